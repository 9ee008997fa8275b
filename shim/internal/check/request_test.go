package check

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/lameduck-init/lameduck/internal/tables"
)

// TestRequest: what is sent, and where, for each form of a URL; without a form, an error. A program is no
// request.
func TestRequest(t *testing.T) {
	for _, cells := range tables.Rows(`
		http://127.0.0.1:9901/drain?graceful   | POST /drain?graceful of 127.0.0.1:9901 at [127.0.0.1:9901]
		GET http://127.0.0.1:9901/a?b=/c       | GET /a?b=/c of 127.0.0.1:9901 at [127.0.0.1:9901]
		http://10.0.0.7                        | POST / of 10.0.0.7 at [10.0.0.7:80]
		http://[::1]?x                         | POST /?x of [::1] at [[::1]:80]
		http://[::ffff:10.0.0.7]:1/            | POST / of [::ffff:10.0.0.7]:1 at [10.0.0.7:1]
		http://localhost/x                     | POST /x of localhost at [127.0.0.1:80 [::1]:80]
		http://localhost:8080/x                | POST /x of localhost:8080 at [127.0.0.1:8080 [::1]:8080]
		unix:/run/admin.sock/x                 | POST /run/admin.sock/x of localhost at []
		GET unix:/run/admin.sock               | GET /run/admin.sock of localhost at []
		PUT http://127.0.0.1:8500/a            | PUT /a of 127.0.0.1:8500 at [127.0.0.1:8500]
		PUT  http://127.0.0.1/                 | PUT / of 127.0.0.1 at [127.0.0.1:80]
		http://127.0.0.1/a b                   |
		PURGE unix:/run/x                      | PURGE /run/x of localhost at []
		http://localhost1:80/                  |
		http://localhost10.0.0.7/              |
		http://:80/                            |
		http://example.org/                    |
		http://user@127.0.0.1/                 |
		http://127.0.0.1:x/                    |
		http://[fe80::1%eth0]/                 |
		http://                                |
		https://127.0.0.1/                     |
		http:/127.0.0.1/                       |
		unix:run/admin.sock                    |
		"http://127.0.0.1/\r\nx"               |
		http://127.0.0.1/ä                     |
		get http://127.0.0.1/                  |
		Delete http://127.0.0.1/               |
		curl http://127.0.0.1/                 | a program
		/bin/GET http://127.0.0.1/             | a program
		deregister                             | a program
		" http://127.0.0.1/"                   | a program
	`) {
		text, want := cells[0], cells[1]
		if unquoted, err := strconv.Unquote(text); err == nil {
			text = unquoted
		}
		r, err := ParseRequest(text)
		got := ""
		switch {
		case !IsRequest(text):
			got = "a program"
		case err == nil:
			got = fmt.Sprintf("%s %s of %s at %v", r.Method, r.Path, r.Host, r.Targets())
		}
		if got != want || want == "a program" && err == nil {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
}
