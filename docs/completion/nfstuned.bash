# bash completion for nfstuned

_nfstuned() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} place=nfstuned words="" word
    # bash takes the "=" of --format=json for a word of its own.
    if [[ $cur == "=" ]]; then
        cur=""
    elif [[ $prev == "=" ]]; then
        prev=${COMP_WORDS[COMP_CWORD-2]}
    fi
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$place $word" in
            "nfstuned status" | "nfstuned undo" | "nfstuned daemon" | "nfstuned udev" | "nfstuned udev mask" | "nfstuned udev unmask" | "nfstuned config" | "nfstuned config show" | "nfstuned config check" | "nfstuned config schema" | "nfstuned completion" | "nfstuned apply" | "nfstuned bake" | "nfstuned check" | "nfstuned explain" | "nfstuned exporter" | "nfstuned install-files" | "nfstuned rules" | "nfstuned samples" | "nfstuned top" | "nfstuned report" | "nfstuned bench") place="$place $word" ;;
        esac
    done
    case "$place $prev" in
        "nfstuned status --format") words="text json" ;;
        "nfstuned undo --format") words="text json" ;;
        "nfstuned config show --format") words="text json" ;;
        "nfstuned apply --remount") words="" ;;
        "nfstuned apply --format") words="text json" ;;
        "nfstuned bake --root") words="" ;;
        "nfstuned bake --format") words="text json" ;;
        "nfstuned check --root") words="" ;;
        "nfstuned check --fstab") words="" ;;
        "nfstuned check --sample") words="" ;;
        "nfstuned check --select") words="NFS000 NFS101 NFS102 NFS103 NFS104 NFS105 NFS106 NFS107 NFS108 NFS109 NFS110 NFS111 NFS112 NFS201 NFS202 NFS203 NFS204 NFS205 NFS206 NFS207 NFS208 NFS209 NFS210 NFS211 NFS212 NFS213 NFS214 NFS215 NFS301 NFS302 NFS303 NFS304 NFS305 NFS306 NFS307 NFS308 NFS309 NFS310 NFS311 NFS312 NFS313 NFS314 NFS315 NFS401 NFS402 NFS403 NFS404 NFS405 NFS406 NFS407 NFS408 NFS409 NFS410 NFS411 NFS412 NFS413 NFS414 NFS415 NFS416 NFS417 NFS418 NFS419 NFS420 NFS421 NFS501 NFS502 NFS503 NFS504 NFS505 NFS506 NFS507 NFS508 NFS509 NFS510 NFS511 NFS701 NFS702 NFS703 NFS704 SMB601 SMB602 SMB603 SMB604 SMB605 SMB606 SMB607 SMB608 SMB609 SMB610 SMB611 SMB612 SMB613" ;;
        "nfstuned check --ignore") words="NFS000 NFS101 NFS102 NFS103 NFS104 NFS105 NFS106 NFS107 NFS108 NFS109 NFS110 NFS111 NFS112 NFS201 NFS202 NFS203 NFS204 NFS205 NFS206 NFS207 NFS208 NFS209 NFS210 NFS211 NFS212 NFS213 NFS214 NFS215 NFS301 NFS302 NFS303 NFS304 NFS305 NFS306 NFS307 NFS308 NFS309 NFS310 NFS311 NFS312 NFS313 NFS314 NFS315 NFS401 NFS402 NFS403 NFS404 NFS405 NFS406 NFS407 NFS408 NFS409 NFS410 NFS411 NFS412 NFS413 NFS414 NFS415 NFS416 NFS417 NFS418 NFS419 NFS420 NFS421 NFS501 NFS502 NFS503 NFS504 NFS505 NFS506 NFS507 NFS508 NFS509 NFS510 NFS511 NFS701 NFS702 NFS703 NFS704 SMB601 SMB602 SMB603 SMB604 SMB605 SMB606 SMB607 SMB608 SMB609 SMB610 SMB611 SMB612 SMB613" ;;
        "nfstuned check --fail-on") words="error warning advice info" ;;
        "nfstuned check --format") words="text json junit sarif prometheus" ;;
        "nfstuned exporter --listen") words="" ;;
        "nfstuned exporter --file") words="" ;;
        "nfstuned install-files --root") words="" ;;
        "nfstuned rules --format") words="text json" ;;
        "nfstuned samples --since") words="" ;;
        "nfstuned samples --mount") words="" ;;
        "nfstuned samples --file") words="" ;;
        "nfstuned samples --format") words="text json csv" ;;
        "nfstuned top --interval") words="" ;;
        "nfstuned top --sort") words="total read write over-fetch ops read-rtt write-rtt connections queue in-flight retrans server-read server-write name" ;;
        "nfstuned top --count") words="" ;;
        "nfstuned top --file") words="" ;;
        "nfstuned report --since") words="" ;;
        "nfstuned report --mount") words="" ;;
        "nfstuned report --file") words="" ;;
        "nfstuned report --output") words="" ;;
        "nfstuned bench --suite") words="azure-files model-loading nconnect netapp quick read-ahead" ;;
        "nfstuned bench --nconnect") words="" ;;
        "nfstuned bench --job") words="" ;;
        "nfstuned bench --runtime") words="" ;;
        "nfstuned bench --size") words="" ;;
        "nfstuned bench --repeats") words="" ;;
        "nfstuned bench --rate") words="" ;;
        "nfstuned bench --format") words="text json html" ;;
        "nfstuned bench -o") words="" ;;
        "nfstuned bench --output") words="" ;;
        "nfstuned bench --against") words="" ;;
        *) case "$place" in
            "nfstuned") words="status undo daemon udev config completion apply bake check explain exporter install-files rules samples top report bench --version -h --help" ;;
            "nfstuned status") words="--format -h --help" ;;
            "nfstuned undo") words="--format -h --help" ;;
            "nfstuned daemon") words="-h --help" ;;
            "nfstuned udev") words="mask unmask -h --help" ;;
            "nfstuned udev mask") words="-h --help" ;;
            "nfstuned udev unmask") words="-h --help" ;;
            "nfstuned config") words="show check schema -h --help" ;;
            "nfstuned config show") words="--format -h --help" ;;
            "nfstuned config check") words="-h --help" ;;
            "nfstuned config schema") words="-h --help" ;;
            "nfstuned completion") words="bash fish zsh -h --help" ;;
            "nfstuned apply") words="--dry-run --fstab --persist --remount --yes --follow-symlink --prune --format -h --help" ;;
            "nfstuned bake") words="--root --daemonless --undo --dry-run --format -h --help" ;;
            "nfstuned check") words="--root --fstab --offline --sample --select --ignore --fail-on --format -h --help" ;;
            "nfstuned explain") words="NFS000 NFS101 NFS102 NFS103 NFS104 NFS105 NFS106 NFS107 NFS108 NFS109 NFS110 NFS111 NFS112 NFS201 NFS202 NFS203 NFS204 NFS205 NFS206 NFS207 NFS208 NFS209 NFS210 NFS211 NFS212 NFS213 NFS214 NFS215 NFS301 NFS302 NFS303 NFS304 NFS305 NFS306 NFS307 NFS308 NFS309 NFS310 NFS311 NFS312 NFS313 NFS314 NFS315 NFS401 NFS402 NFS403 NFS404 NFS405 NFS406 NFS407 NFS408 NFS409 NFS410 NFS411 NFS412 NFS413 NFS414 NFS415 NFS416 NFS417 NFS418 NFS419 NFS420 NFS421 NFS501 NFS502 NFS503 NFS504 NFS505 NFS506 NFS507 NFS508 NFS509 NFS510 NFS511 NFS701 NFS702 NFS703 NFS704 SMB601 SMB602 SMB603 SMB604 SMB605 SMB606 SMB607 SMB608 SMB609 SMB610 SMB611 SMB612 SMB613 -h --help" ;;
            "nfstuned exporter") words="--listen --file -h --help" ;;
            "nfstuned install-files") words="--root --dry-run --remove -h --help" ;;
            "nfstuned rules") words="--format -h --help" ;;
            "nfstuned samples") words="--since --mount --file --format -h --help" ;;
            "nfstuned top") words="--interval --sort --count --file -h --help" ;;
            "nfstuned report") words="--since --mount --file --output --offline --samples-only -h --help" ;;
            "nfstuned bench") words="--suite --compare --nconnect --job --full --runtime --size --repeats --rate --yes --format -o --output --against -h --help" ;;
        esac ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

# Where no word is known, the value is a file's name or free.
complete -o default -F _nfstuned nfstuned
