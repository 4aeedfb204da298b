#!/bin/sh
# told_test.sh BIN PACKAGING: what the tools in folder BIN can do is told by the manual pages and
# the shell's completion in folder PACKAGING, and nothing else is.
bin=$1
packaging=$2
completion=$packaging/completion/via
failed=0

# options TEXT...: the long options that a text has, a line each
options() { grep -oE -- '--[a-z][a-z-]*' "$@" | sort -u; }
# page NAME: a manual page as plain text
page() { sed 's/\\-/-/g' "$packaging/man/$1"; }
# tells WHERE TEXT WORD...: each of the words stands there
tells() {
    where=$1 text=$2
    shift 2
    for word; do
        printf '%s\n' "$text" | grep -qE -- "(^|[^a-z-])$word([^a-z-]|\$)" && continue
        echo "$where does not tell of $word"
        failed=1
    done
}
# A list in braces, behind a word, of what --help says.
choices() { sed -n "s/.*$1 TEXT:{\([^}]*\)}.*/\1/p" | tr ',' ' '; }

completed=$(cat "$completion")
page_of_via=$(page via.1)
# What a command's --help names of its own commands.
commands() { sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p'; }
kinds=$("$bin/via" bench --help | commands)
for command in info stat demo "keys new" "keys trust" "keys show" "keys decrypt" \
    "lab list" "lab run" "lab exec" "lab explain" "lab reproduce" \
    "lab without" "lab compare" "lab ask" "lab record" "lab replay" "lab sweep" "lab measure" \
    topology sockets $(printf 'bench+%s ' $kinds); do
    kind=${command#bench+}
    test "$kind" = "$command" || command="bench $kind"
    help=$("$bin/via" $command --help) || exit 1
    given=$(printf '%s\n' "$help" | sed -n 's/^ *\(-.,\)\{0,1\}\(--[a-z-]*\).*/\2/p')
    test -n "$given" || { echo "via $command --help tells of no options"; exit 1; }
    all="$all $given"
    case $command in
        bench*) completes=$(bash -c '. "$1"; cd / && _via_bench "$2" none' - "$completion" "$kind")
            tells "the completion of via $command" "--help $completes" $given
            for told in $(echo "$completes" | grep -oE -- '--[a-z-]+'); do
                tells "via $command --help" "$given" "$told"
            done ;;
        *) tells "the completion of via $command" "$completed" $given
            tells via.1 "$page_of_via" $(printf '%s\n' "$given" | grep -v help) ;;
    esac
done
tells via.1 "$page_of_via" $kinds
tells "the completion of via bench" "$completed" $kinds \
    $("$bin/via" bench channels | sed -n '/^kernel, /q;s/^\([a-z-]*\) .*/\1/p')

help=$("$bin/via-sim" --help) || exit 1
tells via-sim.1 "$(page via-sim.1)" $(printf '%s\n' "$help" | sed -n 's/^ *\(--[a-z]*\).*/\1/p') \
    $(printf '%s\n' "$help" | choices --medium)

given=$("$bin/viad" --help | options) || exit 1
tells viad.8 "$(page viad.8)" $given
all="$all $given"

# What is told and cannot be done; mpirun's own options are another program's.
all="$all --version --show --mca $("$bin/via-sim" --help | options)"
for told in $(options "$completion") $(page via.1 | options) $(page via-sim.1 | options) \
    $(page viad.8 | options); do
    case " $(echo $all) " in
        *" $told "*) ;;
        *) echo "$told is told of, and no command has it"; failed=1 ;;
    esac
done
exit $failed
