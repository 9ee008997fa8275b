package stop_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Tests of --alive-file and --wait-gone: two containers of a pod that share a volume. What is an
// alive file, and which files are waited for, package alive tests.

// TestWaitGone: --wait-gone waits for files that may belong to a running app, not for stale
// or missing files, and warns of paths that are a mistake.
func TestWaitGone(t *testing.T) {
	for _, c := range box.Table(`
		case        | before                                   | flags         | session
		no folder   | true                                     |               | elapsed / warns there is no directory
		stale       | mkdir in; echo lameduck alive 1 >in/file |               | elapsed / warns
		foreign     | mkdir in; echo 1234 >in/file             | --max-delay=2 | ceiling / warns
		a folder    | mkdir -p in/file                         | --max-delay=2 | ceiling / warns is a directory
		floor kept  | mkdir in                                 | --delay=1     | elapsed / warns
		and silence | mkdir in                                 | --until=quiet | no_listener / warns
	`) {
		c["line"] = "sh -c '" + c["before"] + `; exec "$@"' sh LAMEDUCK --grace-period=30 --wait-gone=DIR/in/file ` + c["flags"] + " CATCH"
		c["session"] = "ready / TERM / got TERM / > exit 7 / exits 7 / ended " + c["session"]
		c.Play(t, nil)
	}
}

// TestAliveFile: the alive file is there while the command runs, and gone when the command has
// ended, in whatever way, or has not started, as after a stop signal before its start. An alive file or a termination log that cannot be
// written, or belongs to another program, keeps the command from starting, and stays.
func TestAliveFile(t *testing.T) {
	taken := box.FreeAddr()
	dir := testutil.Must(os.MkdirTemp("", "alive"))
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o777)
	testutil.WriteFile(t, dir+"/foreign", "1234\n")
	first := box.Catch(t, "--alive-file="+dir+"/first --health="+taken)
	for _, c := range box.Table(`
		path    | faults    | flags                         | command                            | code | says
		a       |           |                               | sh -c 'grep -c . $ALIVE; exit 7'   | 7    |
		b       | uid=65534 |                               | sh -c 'grep -c . $ALIVE; exit 7'   | 7    |
		c       |           |                               | sh -c 'kill -KILL $$'              | 137  |
		d       |           |                               | /no/such/program                   | 127  |
		e       |           |                               | /etc/passwd                        | 126  |
		f       |           | --linger=1                    | sh -c 'grep -c . $ALIVE; sleep 9&' | 0    |
		g       |           | --health=TAKEN                | echo started                       | 125  | cannot listen on TAKEN: address already in use
		h       |           | --termination-log=/dev/stderr | echo started                       | 125  | not a regular file: give a file, or none
		i       | read-only |                               | echo started                       | 125  | read-only file system
		foreign |           |                               | echo started                       | 125  | cannot overwrite a file of another program
		j       | pending=TERM | --on-stop='echo ran'       | echo started                       | 143  |
		first   |           |                               | echo started                       | 125  | another running lameduck holds the lock
	`) {
		path := dir + "/" + c["path"]
		expand := strings.NewReplacer("TAKEN", taken).Replace
		b := box.Setup{Faults: c["faults"], Env: []string{"ALIVE=" + path}}.Boot(t,
			"-d 1 --alive-file="+path+" "+expand(c["flags"]), box.Words(c["command"])...)
		b.WantExit(testutil.Must(strconv.Atoi(c["code"])))
		if strings.Contains(c["command"], "ALIVE") {
			b.Out.Want("1")
		} else {
			b.Out.Want()
		}
		if c["says"] != "" {
			b.WantOneLine("(LAMEDUCK_", expand(c["says"]))
		}
		if _, err := os.Lstat(path); (err == nil) != (len(c["path"]) > 1) {
			t.Errorf("%s, %s: %v", c["path"], c["command"], err)
		}
	}
	first.Exit()
}
