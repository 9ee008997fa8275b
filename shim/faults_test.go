package shim

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestFaultsDocs: the tests that docs/contributing/faults.md names as ROOM/TEST or ROOM/TEST/CASE
// exist, and each row names a test.
func TestFaultsDocs(t *testing.T) {
	code := map[string]string{} // by room; e2e: in whichever folder
	for _, pattern := range []string{"*_test.go", "internal/*/*_test.go", "internal/*/*/*_test.go"} {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			room := filepath.Base(filepath.Dir("shim/" + path))
			if strings.HasPrefix(path, "internal/e2e/") {
				room = "e2e"
			}
			code[room] += string(testutil.Must(os.ReadFile(path)))
		}
	}
	rows := 0
	named := regexp.MustCompile("`([a-z0-9]+)/(Test[^`/]*)/?([^`]*)`")
	for _, row := range tables.Rows(string(testutil.Must(os.ReadFile(testutil.Path("docs/contributing/faults.md"))))) {
		if len(row) != 4 || row[1] == "---" || row[1] == "promise" {
			continue
		}
		rows++
		tests := named.FindAllStringSubmatch(row[2], -1)
		if len(tests) == 0 {
			t.Errorf("nothing shows it: %s", row)
		}
		for _, test := range tests {
			room := code[test[1]]
			if !strings.Contains(room, "func "+test[2]+"(") || !strings.Contains(room, test[3]) {
				t.Errorf("there is no test %s", test[0])
			}
		}
	}
	if rows < 40 {
		t.Errorf("%d rows", rows)
	}
}
