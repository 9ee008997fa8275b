package dropin_test

import "testing"

// TestDropinTerminal: inits and their commands on a terminal.
func TestDropinTerminal(t *testing.T) {
	sessions(t, `
	inits | needs | on | line | session
	# dumb-init leaves the terminal to its command's session. The HUP and CONT with which the kernel notifies
	# dumb-init are not passed on; later HUPs and CONTs are.
	dumb-init tini | | terminal | INIT -- CATCH | ready / HUP / got HUP / CONT / got CONT / ^C / got INT / > exit 7 / exits 7
		/ once got HUP / once got CONT / once got INT
	# dumb-init makes a terminal the controlling terminal of its command only where no other session has the terminal.
	# TIOCSCTTY with the argument 1 and CAP_SYS_ADMIN would take the terminal from the other session for good.
	dumb-init | setsid | terminal, outside | sh -c 'INIT sh -c "$ASK" command; sh -c "$ASK" shell' | command: no / shell: yes / exits 0
	dumb-init | setsid | terminal, outside | sh -c 'setsid -w INIT sh -c "$ASK" command; sh -c "$ASK" shell' | command: no / shell: yes / exits 0
	# A terminal on standard input without a session becomes the controlling terminal of the command.
	dumb-init | python3 | outside | python3 -c 'import os, pty, sys; keys, tty = pty.openpty(); os.set_inheritable(keys, True); os.dup2(tty, 0); os.execvp(sys.argv[1], sys.argv[1:])' INIT sh -c 'eval "$ASK"' command | command: yes / exits 0
	# A script without an interpreter line has the terminal too (the kernel refuses to execute such a file, and the
	# init executes the shell instead). Text and end of file (Ctrl-D) pass the terminal unchanged.
	tini dumb-init catatonit | | terminal | sh -c 'echo "$ASK" >script; chmod +x script; exec INIT ./script' | script: yes / exits 0
	tini dumb-init catatonit | | terminal, outside | INIT -- sh -c 'stty -echo; echo ready; tac' | ready / > a / > b / > c / ^D / c / b / a / exits 0
	# An interactive shell has job control. (catatonit blocks the terminal stop signals for its command.)
	tini dumb-init | bash | terminal | INIT -- SHELL | $ / > sleep 1000 / foreground sleep / ^Z / Stopped / > fg / foreground sleep / ^Z / Stopped / > bg; fg / foreground sleep / ^C / > echo code $? / code 130 / > exit 3 / exits 3
	tini dumb-init | bash | terminal, outside | INIT -- SHELL | $ / > sleep 1000 / foreground sleep / ^Z / Stopped / > fg / foreground sleep / ^Z / Stopped / > bg; fg / foreground sleep / ^C / > echo code $? / code 130 / > exit 3 / exits 3
	dumb-init | bash | terminal | INIT -c SHELL | $ / > sleep 1000 / foreground sleep / ^Z / Stopped / > fg / foreground sleep / ^Z / Stopped / > bg; fg / foreground sleep / ^C / > echo code $? / code 130 / > exit 3 / exits 3
	dumb-init | bash | terminal, outside | INIT -c SHELL | $ / > sleep 1000 / foreground sleep / ^Z / Stopped / > fg / foreground sleep / ^Z / Stopped / > bg; fg / foreground sleep / ^C / > echo code $? / code 130 / > exit 3 / exits 3
	# For an interactive shell, an init and its command are one job. One that continued in the background may have
	# another leader. Until its command runs, dumb-init loses signals.
	lameduck | bash | terminal, outside | SHELL | $ / > INIT sh -c 'echo r$((1))dy; exec sleep 1000' / r1dy / foreground sleep / ^Z / Stopped / > fg
		/ foreground sleep / ^Z / Stopped / > bg; fg / foreground sleep lameduck / ^C / > echo code $? / code 130 / > exit 3 / exits 3
	dumb-init | bash | terminal, outside | SHELL | $ / > INIT -c sh -c 'echo r$((1))dy; exec sleep 1000' / r1dy / foreground dumb-init / ^Z / Stopped / > fg
		/ foreground dumb-init / ^Z / Stopped / > bg; fg / foreground dumb-init / ^C / > echo code $? / code 130 / > exit 3 / exits 3
	`)
}
