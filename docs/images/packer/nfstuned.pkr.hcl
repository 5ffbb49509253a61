# An Azure image with nfstuned in it. Run it where dist/ and docs/images/ are:
#   sh dev/build
#   packer init docs/images/packer && packer build -var deb=dist/nfstuned_0.2.0-1_amd64.deb docs/images/packer
packer {
  required_plugins {
    azure = {
      source  = "github.com/hashicorp/azure"
      version = ">= 2.0.0"
    }
  }
}

variable "deb" {
  type        = string
  description = "The package, as sh dev/build makes it."
}

variable "resource_group" {
  type    = string
  default = "images"
}

source "azure-arm" "debian" {
  use_azure_cli_auth                = true
  os_type                           = "Linux"
  image_publisher                   = "Debian"
  image_offer                       = "debian-13"
  image_sku                         = "13-gen2"
  vm_size                           = "Standard_D2s_v5"
  build_resource_group_name         = var.resource_group
  managed_image_resource_group_name = var.resource_group
  managed_image_name                = "debian-13-nfstuned"
}

build {
  sources = ["source.azure-arm.debian"]

  provisioner "file" {
    source      = var.deb
    destination = "/tmp/nfstuned.deb"
  }

  provisioner "file" {
    source      = "${path.root}/../nfstuned.toml"
    destination = "/tmp/nfstuned.toml"
  }

  # A script that fails ends the build: a finding of the check as well.
  provisioner "shell" {
    execute_command = "sudo sh '{{ .Path }}'"
    script          = "${path.root}/bake.sh"
  }

  # The last step, as Azure asks for it: it takes the build's own user and keys away. `sh` does not look at the
  # first line that Packer writes, with its -e.
  provisioner "shell" {
    execute_command = "sudo sh '{{ .Path }}'"
    inline          = ["set -e", "/usr/sbin/waagent -force -deprovision+user", "sync"]
    skip_clean      = true
  }
}
