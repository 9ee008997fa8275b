package shim

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

const module = "github.com/lameduck-init/lameduck/"

// walls lists what each package may import beyond the standard library, and what a pure one, of
// policy, may import of that: the names of rooms (shim/internal/NAME), and cli (cmd/internal/cli),
// kong, shim and unix (golang.org/x/sys/unix). Every package has to be listed.
var walls = map[string]string{
	"cmd/lameduck":     "cli shim",
	"cmd/internal/cli": "kong shim",
	"shim":             "alive check health lastresort letgo observe plan preset proc procfs quote report sig sigcatch stderr stop termlog traffic unix watch",

	"shim/internal/alive":      "unix",
	"shim/internal/check":      "pure: fmt net/netip strconv strings",
	"shim/internal/closer":     "procfs scope sockdiag tcp unix",
	"shim/internal/cost":       "pure: cmp slices time ledger tcp traffic",
	"shim/internal/health":     "check unix",
	"shim/internal/lastresort": "proc sig sigcatch",
	"shim/internal/ledger":     "pure: hash/maphash net/netip slices time tcp",
	"shim/internal/letgo":      "pure: cmp maps net/netip slices strings time ledger tcp",
	"shim/internal/observe":    "alive check closer health ledger letgo procfs scope sockdiag stop tcp traffic unix",
	"shim/internal/plan":       "pure: cmp errors fmt math net/netip slices strings time check letgo preset quote report sig stop traffic",
	"shim/internal/preset":     "pure: cmp embed fmt path slices strconv strings sync time sig stop",
	"shim/internal/proc":       "procfs sig sigcatch unix",
	"shim/internal/procfs":     "sig tcp unix",
	"shim/internal/quote":      "pure: cmp fmt strconv strings unicode/utf16 unicode/utf8",
	"shim/internal/report":     "pure: cmp encoding/json fmt net/netip slices strings time cost letgo preset quote sig stop traffic",
	"shim/internal/scope":      "procfs tcp unix",
	"shim/internal/sig":        "pure: fmt math/bits slices strconv strings",
	"shim/internal/sigcatch":   "sig",
	"shim/internal/sockdiag":   "tcp unix",
	"shim/internal/stderr":     "quote unix",
	"shim/internal/stop":       "pure: cmp errors fmt slices strconv strings time sig",
	"shim/internal/tcp":        "pure: math net/netip slices time",
	"shim/internal/termlog":    "quote unix",
	"shim/internal/traffic":    "pure: cmp net/netip slices time ledger stop tcp",
	"shim/internal/watch":      "cost observe plan proc report sig sigcatch stderr stop termlog traffic unix",

	// For tests only.
	"shim/internal/e2e/box":         "github.com/creack/pty namespaces proc sig tables testutil testutil/netns unix",
	"shim/internal/testutil":        "testutil/netns unix",
	"shim/internal/testutil/flags":  "check plan preset sig stop tables",
	"shim/internal/testutil/netns":  "namespaces",
	"shim/internal/testutil/script": "sig stop",
	"shim/internal/testutil/world":  "ledger plays stop tables tcp traffic",
}

// wallName shortens an import path to the name in walls.
var wallName = strings.NewReplacer(module+"shim/internal/", "", module+"cmd/internal/", "", module+"internal/", "", module, "",
	"github.com/alecthomas/kong", "kong", "golang.org/x/sys/unix", "unix")

// sources are the files of a package for one system.
type sources struct {
	ImportPath, Dir          string
	Imports, GoFiles, SFiles []string
}

// list returns what go list finds from the root of the repository.
func list(t *testing.T, system string, args ...string) (found []sources) {
	t.Helper()
	run := exec.Command("go", append([]string{"list", "-e", "-json=ImportPath,Dir,Imports,GoFiles,SFiles"}, args...)...)
	run.Dir = ".."
	run.Env = append(run.Environ(), "CGO_ENABLED=0", "GOOS="+system)
	decoder := json.NewDecoder(bytes.NewReader(testutil.Must(run.Output())))
	for {
		var one sources
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) && len(found) > 20 {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		found = append(found, one)
	}
}

var (
	clock   = regexp.MustCompile(`\btime\.(Now|Since|Until|After|AfterFunc|Sleep|NewTimer|NewTicker|Tick)\(`)
	initial = regexp.MustCompile(`(?m)^func init\(`)
)

// TestWalls: a package imports nothing but what walls allows. The pure rooms have no
// assembly, so they build everywhere, and no clock: they get the time from their callers. The
// module has a single init function, which catches signals.
func TestWalls(t *testing.T) {
	for _, system := range []string{"linux", "darwin"} {
		for _, p := range list(t, system, "./cmd/...", "./shim/...") {
			room := strings.TrimPrefix(p.ImportPath, module)
			allowed, known := walls[room]
			isPure := strings.HasPrefix(allowed, "pure: ")
			if !known && len(p.GoFiles) > 0 {
				t.Errorf("package %s is not listed in walls", room)
			}
			for _, imported := range p.Imports {
				first, _, _ := strings.Cut(imported, "/")
				free := !isPure && !strings.Contains(first, ".")
				if !free && !slices.Contains(strings.Fields(allowed), wallName.Replace(imported)) {
					t.Errorf("%s may not import %s", room, imported)
				}
			}
			if isPure && len(p.SFiles) > 0 {
				t.Errorf("%s has %v", room, p.SFiles)
			}
			for _, name := range p.GoFiles {
				text := testutil.Must(os.ReadFile(filepath.Join(p.Dir, name)))
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
		if slices.Contains([]string{"net", "net/http", "os/exec", "crypto/tls"}, p.ImportPath) {
			t.Errorf("the product imports %s", p.ImportPath)
		}
	}
}
