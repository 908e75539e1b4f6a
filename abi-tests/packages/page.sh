#!/usr/bin/env bash
# Every block of commands of the pages is run by one of the scripts beside this; and the reader of pages itself.
set -u
. "$(dirname "$0")/lib"
while read -r mark reason; do
    [ "$mark" != by-hand ] || { echo "by hand, as it is $reason"; continue; }
    why=
    grep -qE "(run_block|in_tree_block) $mark( |\$)" "$here"/*.sh || why="no script runs it"
    verdict "page-$mark" "$why"
done < <("$here/blocks" "${pages[@]}" || echo unreadable)

refuses() { # NAME TEXT: a page of this text is an error
    printf -- "$2" >"$WORK/$1.md"
    if "$here/blocks" "$WORK/$1.md" >/dev/null 2>&1; then echo "FAIL reader-$1: it said nothing"; else echo "ok reader-$1"; fi
}
refuses no-language '```\nls\n```\n'
refuses no-mark '```sh\nls\n```\n'
refuses no-reason '```sh by-hand\nls\n```\n'
refuses no-end '```sh here\nls\n'
refuses indented 'text\n\n    ls\n'
refuses indented-by-tab 'text\n\n\tls\n'
refuses other-shell '```bash\nls\n```\n'
refuses with-output '```console\n$ ls\n```\n'
refuses other-fence '~~~\nls\n~~~\n'
refuses in-list '- a list\n\n  ```sh one\n  ls\n  ```\n'
printf '# title\n```text\nrm\n```\n- a list\n\n    goes on\n\n```sh one\nls\n  -l\n```\n' >"$WORK/good.md"
verdict reader-marks "$(diff <(echo one) <("$here/blocks" "$WORK/good.md"))"
verdict reader-commands "$(diff <(printf 'ls\n  -l\n') <("$here/blocks" -c one "$WORK/good.md"))"
