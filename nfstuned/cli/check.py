"""`nfstuned check`."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import click

from nfstuned.app.accept import accept, without_baseline, write_baseline
from nfstuned.app.facts import Scope, denied_files, examine
from nfstuned.cli.terminal import (
    OutsideWithProgress,
    RuleName,
    coloured,
    fail_on_option,
    format_option,
    host_name,
    live_outside,
    note,
    print_document,
    terminal_width,
    unreadable_lines,
    usable_policy,
)
from nfstuned.core.rules.catalogue import (
    RULES,
    correction,
    first_unknown,
    run_rules,
    select_rules,
    split_words,
)
from nfstuned.errors import ParseError
from nfstuned.host.image_root import ImageRoot, host_root
from nfstuned.host.network.outside import Outside
from nfstuned.host.policy import image_policy
from nfstuned.host.root import Root, read_proposal
from nfstuned.model.facts import BROKEN, CLEAN, FINDINGS, Need, Report, Rule, Severity
from nfstuned.model.kernel import KernelRelease
from nfstuned.model.policy import Assignment, ConfigError, Match, Policy
from nfstuned.parse.fields import count
from nfstuned.view.check import check_document, findings_counts, report_lines, verdict_lines

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.ADVICE: "cyan", Severity.INFO: "blue"}


class CheckOrder(NamedTuple):
    """The options of the command."""

    paths: tuple[str, ...] = ()
    image: str | None = None
    fstab: str | None = None
    kernel: KernelRelease | None = None
    nfs_utils: tuple[int, ...] | None = None
    providers: tuple[Assignment, ...] = ()
    statistics: bool = False
    fix: bool = False
    diff: bool = False
    baseline: str | None = None
    write_baseline: str | None = None
    offline: bool = False
    sample_s: int = 0
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    verbose: bool = False
    fail_on: str = Severity.WARNING.value
    form: str = "text"


def run_check(root: Root, order: CheckOrder, outside: Outside | None = None) -> int:
    """Judge a host or an image and print the findings; tests pass their own `outside`."""
    rules = _select(order)
    judged = _open_root(root, order)
    own = root if order.image is None else judged
    policy = usable_policy(own) if order.image is None else image_policy(own)
    if policy is None:
        return BROKEN
    policy = replace(policy, assignments=(*order.providers, *policy.assignments))
    check_names(policy, order.providers)
    report = _judge(judged, policy, rules, order, outside)
    if order.fix and _changed(report):
        report = _judge(judged, policy, rules, order, outside)
    accepted = _accepted(report, own, order)
    _note_doubts(judged, accepted or report)
    if accepted is None:
        return BROKEN
    if order.write_baseline is not None:
        return BROKEN if accepted.exit_code == BROKEN else CLEAN
    if order.diff:
        return _print_diff(accepted)
    if order.statistics:
        _print_statistics(accepted)
    else:
        _print(accepted, order.form)
    return accepted.exit_code


def _accepted(report: Report, root: Root, order: CheckOrder) -> Report | None:
    """Return a report without the findings that are accepted; a new baseline is written first.

    None where the settings or the baseline cannot be used: stderr names the problems.
    """
    try:
        report = accept(report, root)
        if order.write_baseline is not None:
            write_baseline(report, order.write_baseline)
            note(f"{order.write_baseline}: {count(len(report.diagnosis.findings), 'finding')}")
        return report if order.baseline is None else without_baseline(report, order.baseline)
    except ConfigError as error:
        problems = error.problems
    except OSError as error:
        problems = (f"{error.filename or order.baseline or order.write_baseline}: {error.strerror}",)
    except ParseError as error:
        problems = (str(error),)
    for problem in problems:
        note(problem)
    return None


def judge_host(root: Root, policy: Policy, outside: Outside | None, *, offline: bool) -> Report:
    """Return the report of every rule on a host; doubts go to stderr."""
    order = CheckOrder(offline=offline)
    judged = host_root(root)
    report = _judge(judged, policy, RULES, order, outside)
    report = _accepted(report, root, order) or report
    _note_doubts(judged, report)
    return report


def _judge(
    root: Root, policy: Policy, rules: Sequence[Rule], order: CheckOrder, outside: Outside | None
) -> Report:
    image = order.image is not None
    scope = Scope(
        image,
        order.offline,
        order.sample_s,
        proposal=order.fstab or "",
        kernel=order.kernel,
        nfs_utils=order.nfs_utils,
        files=order.paths,
    )
    world = OutsideWithProgress(outside or live_outside(root))
    began_s = world.now()
    facts = examine(root, policy, scope, world)
    return Report(
        root=order.image or root.path(""),
        facts=facts,
        rules=tuple(rule for rule in rules if image or Need.IMAGE not in rule.needs),
        diagnosis=run_rules(facts, rules),
        fail_on=Severity(order.fail_on),
        host=host_name(),
        time_s=began_s,
    )


def _note_doubts(root: Root, report: Report) -> None:
    for doubt in report.doubts:
        note(doubt)
    unreadable_lines(denied_files(root, report.facts.snapshot))


def _open_root(root: Root, order: CheckOrder) -> Root:
    """Return the host or the image, with the proposed fstab in it; raises click.BadParameter."""
    _demand_sense(order)
    if order.image is None:
        root = host_root(root)
    else:
        if order.sample_s:
            raise click.BadParameter(
                "an image has no counters: --sample needs a running host", param_hint="--sample"
            )
        name, installed = "", False
        try:
            root = ImageRoot(order.image)
            for name in ("/etc", "/usr/lib/os-release"):
                installed = installed or root.demand_existence(name[1:])
        except OSError as error:
            raise click.BadParameter(f"{order.image}{name}: {error.strerror}", param_hint="--root") from None
        if not installed:
            why = f"{order.image} has no /etc and no os-release, so it is not an image: mount the image there"
            raise click.BadParameter(why, param_hint="--root")
    if order.fstab is not None:
        try:
            root.propose(order.fstab, read_proposal(order.fstab))
        except OSError as error:
            raise click.BadParameter(f"{order.fstab}: {error.strerror}", param_hint="--fstab") from None
    _demand_fit(root, order)
    return root


def _demand_sense(order: CheckOrder) -> None:
    """Raise click.BadParameter for options that do not go together, or not without files."""
    if order.statistics and order.form != "text":
        raise click.BadParameter(
            "it needs --format text; for programs --format prometheus counts", param_hint="--statistics"
        )
    if (order.fix or order.diff) and not order.paths:
        raise click.BadParameter("name the files", param_hint="--fix" if order.fix else "--diff")
    if order.fix and order.diff:
        raise click.BadParameter("--diff changes nothing, and --fix does: leave one out", param_hint="--diff")
    others = {"--root": order.image, "--fstab": order.fstab, "--sample": order.sample_s or None}
    option = next((name for name, value in others.items() if value is not None), "")
    if order.paths and option:
        raise click.BadParameter("with files, this host is not judged: leave it out", param_hint=option)


def _demand_fit(root: Root, order: CheckOrder) -> None:
    """Raise click.BadParameter for options that do not fit to the judged host, image or file."""
    named = {"--kernel": order.kernel, "--nfs-utils": order.nfs_utils, "--provider": order.providers or None}
    option = next((name for name, value in named.items() if value is not None), "")
    why = ""
    if order.image is not None:
        why = "the image has its own"
    elif order.fstab is None and not order.paths:
        why = "this host is judged with its own; give them with FILE or --fstab FILE, for another host"
    elif order.fstab is not None and root.has_fstab(order.fstab):
        why = f"{order.fstab} is this host's own fstab, which is judged with this host's own; give a copy"
    elif order.sample_s:
        option, why = (
            "--sample",
            f"{order.fstab} is judged alone, and has no counters: --sample needs a running host",
        )
    if option and why:
        raise click.BadParameter(why, param_hint=option)


def _select(order: CheckOrder) -> tuple[Rule, ...]:
    """Return the rules by -v and the words of --select and --ignore; raises click.BadParameter."""
    rules = RULES if order.select or order.verbose else tuple(rule for rule in RULES if rule.default)
    if not (order.select or order.ignore):
        return rules
    chosen, ignored = split_words(order.select), split_words(order.ignore)
    if order.select and not chosen:  # a variable in a script was not set: do not judge by every rule
        raise click.BadParameter("no rule is named; nfstuned rules lists them", param_hint="--select")
    for option, wanted in (("--select", chosen), ("--ignore", ignored)):
        word = first_unknown(wanted)
        if word:
            raise click.BadParameter(correction(word), param_hint=option)
    return select_rules(rules, chosen, ignored)


def _print(report: Report, form: str) -> None:
    # Each format's modules are loaded for it alone.
    if form == "text":
        _print_text(report)
    elif form == "json":
        print_document(check_document(report))
    elif form == "prometheus":
        from nfstuned.view.metrics import exposition, findings_families  # noqa: PLC0415 - as above

        sys.stdout.write(exposition(findings_families(findings_counts(report), report.time_s)))
    elif form == "github":
        from nfstuned.view.ci import github_lines  # noqa: PLC0415 - as above

        sys.stdout.writelines(f"{line}\n" for line in github_lines(report))
    elif form == "junit":
        from nfstuned.view.ci import junit  # noqa: PLC0415 - as above

        sys.stdout.write(junit(report))
    else:
        from nfstuned.host.installed import page  # noqa: PLC0415 - as above
        from nfstuned.view.ci import sarif_document  # noqa: PLC0415 - as above

        pages = {finding.rule: page(finding.rule) for finding in report.diagnosis.findings}
        print_document(sarif_document(report, pages))


def _print_diff(report: Report) -> int:
    """Print the changes that --fix would make; return 1 where there are some, and 2 where a check would."""
    from nfstuned.app.files import fixed_files  # noqa: PLC0415 - as above
    from nfstuned.view.change import diff_lines  # noqa: PLC0415 - as above

    status = CLEAN
    for file, old, new, _ in fixed_files(report.diagnosis.findings, report.facts):
        status = FINDINGS
        sys.stdout.writelines(f"{line}\n" for line in diff_lines(old, new, file))
    return max(status, report.exit_code if report.exit_code == BROKEN else CLEAN)


def _changed(report: Report) -> bool:
    """Make the changes that have exactly one right answer; return whether there were some.

    Raises click.BadParameter where a file cannot be written.
    """
    from nfstuned.app.files import fixed_files  # noqa: PLC0415 - as above
    from nfstuned.host.files.write import write_file  # noqa: PLC0415 - as above

    changed = False
    for file, _, new, number in fixed_files(report.diagnosis.findings, report.facts):
        try:
            write_file(file, new.encode("utf-8", "surrogateescape"))
        except OSError as error:
            raise click.BadParameter(f"{file}: {error.strerror}", param_hint="--fix") from None
        note(f"{file}: {count(number, 'change')}")
        changed = True
    return changed


def _print_statistics(report: Report) -> None:
    from nfstuned.cli.table import Column, print_table  # noqa: PLC0415 - as above

    rows = [
        (str(number), severity, id_, name)
        for (id_, name, severity), number in findings_counts(report).items()
        if number
    ]
    if rows:
        columns = (Column(right=True), Column(coloured=True), Column(), Column())
        print_table(columns, rows, ("findings", "severity", "rule", "name"))
    for line in verdict_lines(report):
        sys.stdout.write(f"{line}\n")


def _print_text(report: Report) -> None:
    width = terminal_width() if sys.stdout.isatty() else None
    colour = coloured()
    for line in report_lines(report, width):
        lead, text = line.lead, line.text
        if colour and line.severity is not None:
            lead = click.style(lead, fg=_COLOURS[line.severity], bold=True)
        elif colour and line.heading:
            text = click.style(text, bold=True)
        sys.stdout.write(f"{lead}{text}\n")


def kernel_release(ctx: click.Context, param: click.Parameter, value: str | None) -> KernelRelease | None:  # noqa: ARG001 - click's own signature
    """Return the release of a kernel; raises click.BadParameter."""
    if value is None:
        return None
    if not re.match(r"\d{1,3}\.\d{1,5}(?!\d)", value, re.ASCII) or not value.isprintable():
        raise click.BadParameter(f"{value!r} is not a kernel release such as 5.14.0-427.el9 (uname -r)")
    from nfstuned.parse.proc.machine import parse_release  # noqa: PLC0415 - few checks have the option

    return parse_release(value)


def version_numbers(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:  # noqa: ARG001 - as above
    """Return the numbers of a version, or of a package's version; raises click.BadParameter."""
    if value is None:
        return None
    match = re.fullmatch(r"(?:\d+:)?(\d{1,4}(?:\.\d{1,4}){1,3})(?:[-+~][\w.+~-]*)?", value, re.ASCII)
    if match is None:
        raise click.BadParameter(f"{value!r} is not a version of nfs-utils such as 2.6.4 (mount.nfs -V)")
    return tuple(int(part) for part in match[1].split("."))


def assigned_providers(
    ctx: click.Context,  # noqa: ARG001 - as above
    param: click.Parameter,  # noqa: ARG001 - as above
    values: tuple[str, ...],
) -> tuple[Assignment, ...]:
    """Return entries of the policy for SERVER=PROVIDER; raises click.BadParameter."""
    entries = []
    for value in values:
        from nfstuned.parse.config import checked_servers  # noqa: PLC0415 - as above

        server, equals, provider = value.rpartition("=")
        if not equals or not server or not provider:
            raise click.BadParameter(f"{value!r} is not SERVER=PROFILE, such as 10.0.0.4=azure-netapp-files")
        try:
            servers = checked_servers(server)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
        entries.append(Assignment(Match(servers), provider, f"--provider {value}"))
    return tuple(entries)


def check_names(policy: Policy, providers: Sequence[Assignment]) -> None:
    """Raise click.BadParameter for a provider without a profile."""
    names = [profile.name for profile in policy.profiles]
    for entry in providers:
        if entry.profile not in names:
            from nfstuned.parse.toml import suggestion  # noqa: PLC0415 - as above

            hint = suggestion(entry.profile, names)
            raise click.BadParameter(
                f"there is no profile {entry.profile!r}; {hint}nfstuned config show lists them",
                param_hint="--provider",
            )


@click.command("check")
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[FILE|FOLDER|-]...")
@click.option(
    "--root",
    "image",
    type=click.Path(),
    metavar="DIR",
    help="Judge the files of an image instead of this host.",
)
@click.option(
    "--fstab",
    type=click.Path(),
    metavar="FILE|-",
    help="Judge this fstab; - is stdin. Nothing of this host is judged, unless it is this host's own fstab.",
)
@click.option(
    "--kernel",
    callback=kernel_release,
    metavar="RELEASE",
    help="The kernel release of the host of FILE, as uname -r prints it there.",
)
@click.option(
    "--nfs-utils",
    callback=version_numbers,
    metavar="VERSION",
    help="The nfs-utils version of the host of FILE.",
)
@click.option(
    "--provider",
    "providers",
    multiple=True,
    callback=assigned_providers,
    metavar="SERVER=PROFILE",
    help="The profile of a server that files name by its address: 10.0.0.4=azure-netapp-files.",
)
@click.option(
    "--fix", is_flag=True, help="Change the files where a finding has one right answer, and check again."
)
@click.option("--diff", is_flag=True, help="Print the changes of --fix, and make none.")
@click.option(
    "--baseline", type=click.Path(), metavar="FILE", help="Report only findings that are not in FILE."
)
@click.option(
    "--write-baseline",
    type=click.Path(),
    metavar="FILE",
    help="Write the findings into FILE for --baseline, and exit with 0.",
)
@click.option("--statistics", is_flag=True, help="Print only the number of findings of each rule.")
@click.option("--offline", is_flag=True, help="Send nothing over the network.")
@click.option(
    "--sample",
    "sample_s",
    type=click.IntRange(0, 3600),
    default=0,
    metavar="SECONDS",
    help="Look twice, this many seconds apart, for the rules that measure.",
)
@click.option(
    "--select",
    multiple=True,
    type=RuleName(),
    metavar="IDS",
    help="Only these rules: ids, names, or the start of ids such as NFS1.",
)
@click.option("--ignore", multiple=True, type=RuleName(), metavar="IDS", help="Leave these rules out.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Also report the newest kernel's defaults of an image (NFS703)."
)
@fail_on_option
@format_option("junit", "sarif", "github", "prometheus")
@click.pass_obj
def check_command(root: Root, /, **options: Any) -> int:  # noqa: ANN401 - CheckOrder has the types
    """Find mistakes in NFS and SMB mounts.

    With FILE or FOLDER it judges files before they are deployed, and nothing of this host: Kubernetes'
    manifests and Helm's output, compose files, Ansible, Terraform's plan as JSON, cloud-init, shell scripts,
    fstab, units of systemd and maps of the automounter.

    Without, it judges the mounts that exist on this host or that its files ask for (fstab, mount units,
    autofs maps), the udev rules, names and ports, and the host itself; with --root the files of an image;
    with --fstab the lines of a file and the names in them. A copy of /proc/mounts is no fstab: check judges
    those mounts on their own host. It changes nothing and touches no mount. `nfstuned rules` lists its rules,
    `nfstuned explain RULE` gives a rule's reasons. IDS are separated by commas.

    \b
    Examples:
      nfstuned check
      nfstuned check deploy/ --offline
      helm template . | nfstuned check - --kernel 6.1.0
      nfstuned check --root /mnt/image --fail-on error
      nfstuned check --fstab fstab.new --offline --format junit > check.xml
      nfstuned check --fstab - --kernel 5.14.0 --nfs-utils 2.5.4 < fstab.new
      nfstuned check --sample 10 --select NFS1,NFS2 --ignore NFS110

    \b
    Exit status:
      0  nothing as bad as --fail-on; with --diff, no change
      1  something is; with --diff, changes, whatever --fail-on says
      2  could not check: wrong usage, an invalid configuration of this host, a rule that crashed, an
         fstab or a map of the automounter that is not understood as a whole, a FILE of no known kind,
         a file that could not be read (a file that only root may read does not count), or one that
         --fix could not write; all other findings are printed, but with an invalid configuration
         nothing is judged
    """
    return run_check(root, CheckOrder(**options))
