package init_test

import (
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
)

// TestLinger: with --linger, lameduck sends TERM to the processes left after the command, in
// every session, waits for their end, and kills what stays. The exit code stays the
// command's. Without /proc, kill(-1) replaces the descendants.
func TestLinger(t *testing.T) {
	const script = `
	slow='trap "sleep 0.3; echo $0 done; exit" TERM; echo $0 up; while :; do sleep 0.05; done'
	stubborn='trap "" TERM; echo $0 up; while :; do sleep 9; done'
	sh -c "$slow" child & (sh -c "$slow" orphan &); (setsid sh -c "$slow" daemon &); eval sh -c '"$'$LAST'"' last & read x; exit 7`
	box.Sessions(t, map[string][]string{"LEAVES": {"sh", "-c", script}}, strings.ReplaceAll(`
	case                 | faults      | env           | line                        | session
	all end              |             | LAST=slow     | LAMEDUCK --linger=15 LEAVES | SESSION
	one stays            |             | LAST=stubborn | LAMEDUCK --linger=3 LEAVES  | SESSION
	no pidfd_open        | deny=434:38 | LAST=stubborn | LAMEDUCK --linger=3 LEAVES  | SESSION
	no pidfd_send_signal | deny=424:1  | LAST=stubborn | LAMEDUCK --linger=3 LEAVES  | SESSION
	no /proc             | no-proc     | LAST=slow     | LAMEDUCK --linger=15 LEAVES | SESSION
	no /proc, one stays  | no-proc     | LAST=stubborn | LAMEDUCK --linger=3 LEAVES  | SESSION
	`, "SESSION", "up / up / up / up / > / exits 7 / once child done / once orphan done / once daemon done"))
}

// TestParents: lameduck as a subreaper, and with --parent-death-signal.
func TestParents(t *testing.T) {
	box.Sessions(t, nil, `
	case | faults | on | line | session
	no subreaper | seccomp | | LAMEDUCK LAMEDUCK sh -c 'exit 7' | err orphans will not be reaped / exits 7
	no subreaper, which is needed | seccomp | | LAMEDUCK LAMEDUCK -s sh -c 'exit 7' | exits 125
	the parent dies | | outside | LAMEDUCK LAMEDUCK --parent-death-signal=USR1 CATCH | ready / KILL / got USR1 / > exit 0 / exits -1
	the parent is dead | | | LAMEDUCK sh -c '(LAMEDUCK --parent-death-signal=TERM echo started &); read x' | started / > / exits 0
	`)
}
