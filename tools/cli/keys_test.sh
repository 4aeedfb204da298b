#!/bin/sh
# keys_test.sh VIA: keys are made once, for their owner alone, and told by fingerprints.
via=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export XDG_CONFIG_HOME="$folder/config"
file=$XDG_CONFIG_HOME/openvia/wire.keys

failed() { echo "$1"; exit 1; }
says() {
    case $said in *"$1"*) ;; *) failed "\"$said\" does not say \"$1\"" ;; esac
}

said=$("$via" keys show) || failed "no key is no failure"
says "no key"
said=$("$via" keys new 2>&1) || failed "$said"
says "$file"
says "asks and answers"
test "$(stat -c %a "$file")" = 600 || failed "others can read the key"
for digits in $(sed -n 's/^key //p' "$file"); do
    case $said in *"$digits"*) failed "the key itself is shown" ;; esac
done
before=$(cat "$file")
said=$("$via" keys new 2>&1)
test $? -eq 1 || failed "a second key took the first one's place"
says "has a key already"
test "$before" = "$(cat "$file")" || failed "the file was changed"
"$via" keys new --beside >/dev/null || failed "no second key"
said=$("$via" keys show) || failed "$said"
test "$(printf '%s\n' "$said" | grep -c '  key ')" -eq 2 || failed "$said"
chmod 644 "$file"
said=$("$via" keys show 2>&1)
test $? -eq 1 || failed "a key that others read is shown as if it were one"
says "chmod 600"
chmod 600 "$file"
echo nonsense >>"$file"
said=$("$via" keys show 2>&1)
test $? -eq 1 || failed "a bad line is passed over"
says "wire.keys:3:"
