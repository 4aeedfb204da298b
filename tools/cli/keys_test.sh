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
public=$(printf '%064d' 7)
said=$("$via" keys trust 10.1.2.3 "$public" --until 2020-01-31 2>&1) || failed "$said"
says "10.1.2.3 $public is trusted"
said=$("$via" keys trust '[fe80::1]' "$public" 2>&1) || failed "$said"
said=$("$via" keys trust 10.1.2.3 short 2>&1) && failed "a short key is trusted"
says "64 hexadecimal digits"
said=$("$via" keys trust no.such.host.invalid "$public" 2>&1) &&
    failed "a host that is not there is trusted"
says "no host is called"
said=$("$via" keys new --host --until 2999-02-30 2>&1) && failed "there is a 30th of February"
says "no day"
said=$("$via" keys new --host --until 2999-12-31) || failed "no key of the host's own"
says "until 2999-12-31"
own=$(printf '%s\n' "$said" | sed -n 's/^  own \([0-9a-f]*\)  asks.*/\1/p')
test ${#own} -eq 64 || failed "$said does not show the public key"
grep -q "$own" "$file" && failed "the public key is kept, not the private one"
said=$("$via" keys new --host 2>&1) && failed "a second pair took the first one's place"
said=$("$via" keys show) || failed "$said"
says "host 10.1.2.3 $public  until 2020-01-31, which is over"
says "host [fe80::1] $public"
lines=$(($(wc -l <"$file") + 1))
chmod 644 "$file"
said=$("$via" keys show 2>&1)
test $? -eq 1 || failed "a key that others read is shown as if it were one"
says "chmod 600"
chmod 600 "$file"
echo nonsense >>"$file"
said=$("$via" keys show 2>&1)
test $? -eq 1 || failed "a bad line is passed over"
says "wire.keys:$lines:"
