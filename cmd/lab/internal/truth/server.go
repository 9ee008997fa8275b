package truth

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// server is a kind of server, and listens on port at all addresses.
type server struct {
	needs   []string // programs
	env     []string
	tls     bool
	noPort  bool // listens nowhere: ready when the file DIR/ready is there
	command func(at place) ([]string, error)
}

// place is where a server runs.
type place struct {
	exe string // the laboratory
	dir string // for the server's files
}

func (t *trial) place() (place, error) {
	exe, err := os.Readlink("/proc/self/exe")
	return place{exe: exe, dir: t.dir}, err
}

// fill replaces the words PORT, DIR and UPSTREAM (HOST:PORT) in a text.
func (at place) fill(text string) string {
	upstream := fmt.Sprintf("%s:%d", clientEnd, upstreamPort)
	return strings.NewReplacer("PORT", fmt.Sprint(port), "DIR", at.dir, "UPSTREAM", upstream).Replace(text)
}

// configured returns the command of a server with files: their names and texts. Words and
// texts are filled.
func configured(files map[string]string, words ...string) func(place) ([]string, error) {
	return func(at place) ([]string, error) {
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(at.dir, name), []byte(at.fill(text)), 0o644); err != nil {
				return nil, err
			}
		}
		return strings.Split(at.fill(strings.Join(words, "\x00")), "\x00"), nil
	}
}

// role returns the command of a server that is a role of this program.
func role(words ...string) func(place) ([]string, error) {
	return func(at place) ([]string, error) {
		return append([]string{at.exe, "truth", "serve"}, words...), nil
	}
}
