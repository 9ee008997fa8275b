package shim

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

const module = "github.com/lameduck-init/lameduck/"

// walls lists what each package may import beyond the standard library, and what a pure one, of
// policy, may import of that: the names of rooms (shim/internal/NAME), and cli (cmd/internal/cli),
// kong, shim and unix (golang.org/x/sys/unix). Every package has to be listed.
var walls = tables.Rows(`
	cmd/lameduck                  | cli shim
	cmd/internal/cli              | kong shim
	shim                          | alive check health lastresort letgo observe plan preset proc procfs quote report
    sig sigcatch stderr stop termlog traffic unix watch
	shim/internal/alive           | unix
	shim/internal/check           | pure: fmt net/netip strconv strings
	shim/internal/closer          | procfs scope sockdiag tcp unix
	shim/internal/cost            | pure: cmp slices time ledger tcp traffic
	shim/internal/health          | check unix
	shim/internal/lastresort      | proc sig sigcatch
	shim/internal/ledger          | pure: cmp net/netip slices time tcp
	shim/internal/letgo           | pure: cmp maps net/netip slices strings time ledger tcp
	shim/internal/observe         | alive check closer health ledger letgo procfs report scope sockdiag stop tcp traffic
    unix
	shim/internal/plan            | pure: cmp errors fmt net/netip slices strings time check letgo preset quote
    sig stop traffic
	shim/internal/preset          | pure: cmp embed fmt path slices strconv strings sync time sig stop
	shim/internal/proc            | procfs sig sigcatch unix
	shim/internal/procfs          | sig tcp unix
	shim/internal/quote           | pure: cmp fmt strconv strings time unicode/utf16 unicode/utf8
	shim/internal/report          | pure: cmp encoding/json fmt math slices strings time check cost letgo plan preset
    quote sig stop traffic
	shim/internal/scope           | procfs tcp unix
	shim/internal/sig             | pure: fmt math/bits slices strconv strings
	shim/internal/sigcatch        | sig
	shim/internal/sockdiag        | tcp unix
	shim/internal/stderr          | quote unix
	shim/internal/stop            | pure: cmp errors fmt slices strconv strings time sig
	shim/internal/tcp             | pure: hash/maphash net/netip slices time
	shim/internal/termlog         | quote unix
	shim/internal/traffic         | pure: cmp net/netip slices time ledger stop tcp
	shim/internal/watch           | cost observe plan proc report sig sigcatch stderr termlog traffic unix
	# For tests only.
	shim/internal/e2e/box         | github.com/creack/pty namespaces proc sig tables testutil testutil/netns unix
	shim/internal/testutil        | testutil/netns unix
	shim/internal/testutil/flags  | check plan preset sig stop tables
	shim/internal/testutil/netns  | namespaces
	shim/internal/testutil/script | sig stop tables testutil
	shim/internal/testutil/world  | ledger plays stop tables tcp testutil traffic
`)

// wallName shortens an import path to the name in walls.
var wallName = strings.NewReplacer(module+"shim/internal/", "", module+"cmd/internal/", "", module+"internal/", "", module, "",
	"github.com/alecthomas/kong", "kong", "golang.org/x/sys/unix", "unix")

// list returns what go list finds from the root of the repository: import paths, directories, imports, Go files,
// and those in assembly.
func list(t *testing.T, system string, args ...string) [][]string {
	t.Helper()
	const columns = `{{.ImportPath}}|{{.Dir}}|{{join .Imports " "}}|{{join .GoFiles " "}}|{{join .SFiles " "}}`
	run := exec.Command("go", append([]string{"list", "-e", "-f", columns}, args...)...)
	run.Dir = ".."
	run.Env = append(run.Environ(), "CGO_ENABLED=0", "GOOS="+system)
	found := tables.Rows(string(testutil.Must(run.Output())))
	if len(found) < 20 {
		t.Fatal(found)
	}
	return found
}

var (
	clock   = regexp.MustCompile(`\btime\.(Now|Since|Until|After|AfterFunc|Sleep|NewTimer|NewTicker|Tick)\(`)
	initial = regexp.MustCompile(`(?m)^func init\(`)
)

// TestWalls: a package imports nothing but what walls allows. The pure rooms have no
// assembly, so they build everywhere, and no clock: they get the time from their callers. The
// module has a single init function, which catches signals.
func TestWalls(t *testing.T) {
	allowedIn := map[string]string{}
	for _, row := range walls {
		allowedIn[row[0]] = row[1]
	}
	for _, system := range []string{"linux", "darwin"} {
		for _, p := range list(t, system, "./cmd/...", "./shim/...") {
			room, goFiles := strings.TrimPrefix(p[0], module), strings.Fields(p[3])
			allowed, known := allowedIn[room]
			isPure := strings.HasPrefix(allowed, "pure: ")
			if !known && len(goFiles) > 0 {
				t.Errorf("package %s is not listed in walls", room)
			}
			for _, imported := range strings.Fields(p[2]) {
				first, _, _ := strings.Cut(imported, "/")
				free := !isPure && !strings.Contains(first, ".")
				if !free && !slices.Contains(strings.Fields(allowed), wallName.Replace(imported)) {
					t.Errorf("%s may not import %s", room, imported)
				}
			}
			if isPure && p[4] != "" {
				t.Errorf("%s has %s", room, p[4])
			}
			for _, name := range goFiles {
				text := testutil.Must(os.ReadFile(filepath.Join(p[1], name)))
				if isPure && clock.Match(text) {
					t.Errorf("%s/%s reads the clock", room, name)
				}
				if initial.Match(text) != (room+"/"+name == "shim/internal/sigcatch/catch.go") {
					t.Errorf("%s/%s has an init function, or sigcatch has none", room, name)
				}
			}
		}
	}
}

// TestNothingHeavy: the product does not import packages that cost size and start-up time,
// or that wait for children.
func TestNothingHeavy(t *testing.T) {
	for _, p := range list(t, "linux", "-deps", "./cmd/lameduck") {
		if slices.Contains([]string{"net", "net/http", "os/exec", "crypto/tls"}, p[0]) {
			t.Errorf("the product imports %s", p[0])
		}
	}
}
