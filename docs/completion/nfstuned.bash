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
            "nfstuned status" | "nfstuned apply" | "nfstuned undo" | "nfstuned daemon" | "nfstuned config" | "nfstuned config show" | "nfstuned config check" | "nfstuned config schema" | "nfstuned completion") place="$place $word" ;;
        esac
    done
    case "$place $prev" in
        "nfstuned status --format") words="text json" ;;
        "nfstuned apply --format") words="text json" ;;
        "nfstuned undo --format") words="text json" ;;
        "nfstuned config show --format") words="text json" ;;
        *) case "$place" in
            "nfstuned") words="status apply undo daemon config completion --version -h --help" ;;
            "nfstuned status") words="--format -h --help" ;;
            "nfstuned apply") words="--dry-run --format -h --help" ;;
            "nfstuned undo") words="--format -h --help" ;;
            "nfstuned daemon") words="-h --help" ;;
            "nfstuned config") words="show check schema -h --help" ;;
            "nfstuned config show") words="--format -h --help" ;;
            "nfstuned config check") words="-h --help" ;;
            "nfstuned config schema") words="-h --help" ;;
            "nfstuned completion") words="bash fish zsh -h --help" ;;
        esac ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _nfstuned nfstuned
