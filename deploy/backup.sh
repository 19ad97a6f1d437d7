#!/bin/sh
# Back up into a folder for the day of the week, such as Monday/, and link the same files into one
# for the week of the month and one for the month, such as week-2/ and November/. So there are
# backups of the last seven days, the last weeks, and the last twelve months.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-/var/backups/posting}
export LC_ALL=C
today=$(date +%A)
.venv/bin/flask backup --force "$folder/$today/"
for copy in "week-$((($(date +%-d) + 6) / 7))" "$(date +%B)"; do
    rm -rf "${folder:?}/$copy.new"
    cp --archive --link "$folder/$today" "$folder/$copy.new"
    rm -rf "${folder:?}/$copy"
    mv "$folder/$copy.new" "$folder/$copy"
done
