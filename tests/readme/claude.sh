#!/bin/sh
# Stands in for the real agent in the runs that README.md shows: it edits the test first, then does its work and leaves
# a process and a commit behind. It speaks the line format that the preset reads.
if [ "$1" = --version ]; then
  echo "2.1.0 (Claude Code)"
  exit
fi
cat > /dev/null # the prompt
turn=$(($(cat "$HOME/turns" 2> /dev/null || echo 0) + 1))
echo "$turn" > "$HOME/turns"
if [ "$turn" = 1 ]; then
  echo 'exit 0' > test.sh
  said="I made the test pass."
else
  echo 'add() { echo $(($1 + $2)); }' > src/calc.sh
  git -c user.name=Agent -c user.email=agent@localhost -c gc.auto=0 -c maintenance.auto=false commit -qam "Fix add"
  (sleep 600 > /dev/null 2>&1 &)
  said="add subtracted; it adds now."
fi
printf '{"type":"result","subtype":"success","is_error":false,"result":"%s",' "$said"
printf '"usage":{"input_tokens":900,"output_tokens":40},"total_cost_usd":0.02}\n'
