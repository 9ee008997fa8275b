package stop_test

import (
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// tree reads processes in words: each with its children in parentheses, and after its name + if it
// handles its signal, - if it ignores it, ! if it has been sent a signal, and * if it is a known
// server. The names are the PIDs' in the order of the words.
func tree(text string) (list []stop.Process, names map[int]string) {
	names = map[int]string{}
	parents := []int{1}
	for _, word := range strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(text)) {
		switch word {
		case "(":
			parents = append(parents, list[len(list)-1].PID)
		case ")":
			parents = parents[:len(parents)-1]
		default:
			p := stop.Process{PID: 100 + len(list), Parent: parents[len(parents)-1]}
			p.Handles, p.Ignores = strings.Contains(word, "+"), strings.Contains(word, "-")
			p.Signaled = strings.Contains(word, "!")
			name := strings.TrimRight(word, "+-!*")
			if strings.Contains(word, "*") {
				p.Server, _, _ = strings.Cut(name, ".")
			}
			list, names[p.PID] = append(list, p), name
		}
	}
	return list, names
}

// TestWave: which processes are signaled next, and which are waited for.
func TestWave(t *testing.T) {
	for _, cells := range tables.Rows(`
		# left behind | signaled | at work | last
		                                      |               |        |
		app+                                  | app           | app    |
		app+!                                 |               | app    |
		sleep tail                            |               |        | sleep tail
		sleep! tail                           |               |        | tail
		app+ tee                              | app           | app    | tee
		app+! tee                             |               | app    | tee
		sh(app+)                              | sh            | app    |
		sh!(app+)                             |               | app    |
		sh(app+ sleep) tee                    | sh            | app    | tee
		npm(sh(node+)) worker+ tail           | npm worker    | node worker | tail
		nginx+(worker.1+ worker.2+)           | nginx         | nginx  |
		nginx+!(worker.1+ worker.2+)          |               | nginx  |
		worker.1+ worker.2+!                  | worker.1      | worker.1 worker.2 |
		trap-                                 |               |        |
		trap-(app+)                           | app           | app    |
		trap-(app+! sleep) tee                |               | app    | sleep tee
		trap-(sh(app+) sleep)                 | sh            | app    | sleep
		trap-(sleep) tee                      |               |        | sleep tee
		sh!(trap-(app+) logger) tee           |               | app    | tee
	`) {
		list, names := tree(cells[0])
		in := func(processes []stop.Process) (words []string) {
			for _, p := range processes {
				words = append(words, names[p.PID])
			}
			return words
		}
		now, atWork, last := stop.Wave(list)
		for i, list := range [][]stop.Process{now, atWork, last} {
			if got := strings.Join(in(list), " "); got != cells[i+1] {
				t.Errorf("%q: column %d: %s", cells, i+1, got)
			}
		}
	}
}

// TestServerBelow: which descendant of the command, the first process, is its server.
func TestServerBelow(t *testing.T) {
	for _, cells := range tables.Rows(`
		# processes | name | server
		sh                               |       |
		sh(nginx*(nginx.worker*))        |       | nginx
		sh(nginx*(nginx.worker*))        | nginx | nginx
		sh(nginx*)                       | httpd |
		sh(npm(nginx*)) php-fpm*         |       | nginx
		sh(nginx* php-fpm*)              |       |
		sh(nginx* php-fpm*)              | php-fpm | php-fpm
		sh(nginx.1* nginx.2*)            |       |
		sh(nginx.1* nginx.2*)            | nginx | nginx.1
		sh(s6(nginx*) php-fpm*)          |       | php-fpm
		sh(s6(nginx*) php-fpm*)          | nginx | nginx
	`) {
		list, names := tree(cells[0])
		got := ""
		if server, found := stop.ServerBelow(list, list[0].PID, cells[1]); found {
			got = names[server.PID]
		}
		if got != cells[2] {
			t.Errorf("%q: %q", cells, got)
		}
	}
}
