package init_test

import (
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
)

// TestTerminal: lameduck on a terminal, alone and in an interactive shell.
func TestTerminal(t *testing.T) {
	box.Sessions(t, map[string][]string{"SHELL": box.Shell}, `
	case | needs | on | line | session
	# The signals of keys and of a resize reach the command once, also through two lameducks, one inside the other.
	keys, PID 1 | | terminal | LAMEDUCK CATCH | ready / ^C / got INT / resize / got WINCH / ^Z / got TSTP / > exit 7 / exits 7 / once got INT / once got WINCH / once got TSTP
	keys, an ordinary process | | terminal, outside | LAMEDUCK --delay=1 CATCH | ready / ^C / got INT / resize / got WINCH / ^Z / got TSTP / > exit 7 / exits 7 / once got INT / once got WINCH / once got TSTP
	keys, twice | | terminal | LAMEDUCK LAMEDUCK CATCH | ready / ^C / got INT / resize / got WINCH / ^Z / got TSTP / > exit 7 / exits 7 / once got INT / once got WINCH / once got TSTP
	# Ctrl-C goes to the command's group and does not end a hold; WINCH is a resize and not a stop signal, even with
	# a rewrite of TERM to WINCH.
	in the hold | | terminal | LAMEDUCK -d 1 -r TERM:WINCH -- CATCH | ready / resize / got WINCH / TERM / err holding / ^C
		/ got WINCH / USR1 / got USR1 / > exit 0 / exits 0 / once got INT / ended elapsed WINCH
	# The command can read when the shell has moved its job to the foreground, although no signal tells lameduck so.
	lent | bash | terminal, outside | SHELL | $ / > LAMEDUCK sh -c 'echo run''ning; until set -- $(cut -d" " -f5,8 /proc/$PPID/stat); [ $1 = $2 ]; do :; done; read x; echo it read $x' & / running / > fg / foreground lameduck sh / > words / it read words
		/ > exit 0 / exits 0
	# After lameduck, a script without job control can read again.
	given back | | terminal, outside | sh -c 'LAMEDUCK sh -c "echo inner; read x; echo inner read \$x"; read y; echo outer read $y' | inner / > a / inner read a / > b / outer read b / exits 0
	# Where background processes that write are stopped (stty tostop), the report does not stop lameduck.
	tostop | | terminal, outside | LAMEDUCK -d 1 sh -c 'stty tostop; trap "exit 5" TERM; echo ready; while :; do sleep 0.01; done' | ready / TERM / err holding / exits 5 / ended elapsed
	`)
}
