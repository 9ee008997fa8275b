package peers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"embed"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/internal/plays"
)

// ServerEnd is the server's address in lab truth.
var ServerEnd = net.IPv4(10, 9, 0, 2)

//go:embed scripts
var scripts embed.FS

// Script returns the words that become a server, in a folder of its own with a certificate. The
// variables of the script: HOST, the address to listen on, or "" for all; UPSTREAM, the server
// behind proxies; LAB, the laboratory, whose servers take a PORT; SHARED, a folder for what several
// servers need.
func Script(server []string) []string {
	return append([]string{"sh", "-ec", script(server[0])}, server...)
}

// script returns a script, in which a line "# include PART" stands for what servers have in common.
func script(server string) string {
	return include.ReplaceAllStringFunc(read(server+".sh"), func(line string) string {
		return read(strings.Fields(line)[2])
	})
}

var include = regexp.MustCompile(`(?m)^# include .*$`)

func read(name string) string { return string(must.Get(scripts.ReadFile("scripts/" + name))) }

// Missing returns which of the needs of a row the machine lacks. The first line
// of a server's script has the names of its programs, patterns of the files it needs, and
// "other-users" if it needs another than root.
func Missing(row *plays.Row) (lacking []string) {
	first, _, _ := strings.Cut(script(row.Server[0]), "\n")
	needs := append(strings.Fields(first)[2:], "ip", "mount", "pkill")
	if row.Unprivileged {
		needs = append(needs, "setpriv", "other-users")
	}
	if row.Sleep > 0 {
		needs = append(needs, "tini")
	}
	if row.Remote {
		needs = append(needs, "/dev/net/tun")
	}
	for _, p := range row.Plays {
		if program, known := programs[p.Protocol]; known {
			needs = append(needs, program.name, program.uses)
		}
	}
	users, _ := os.ReadFile("/proc/self/uid_map")
	rootAlone := strings.HasSuffix(string(users), " 1\n") // our user namespace has no other user
	for _, need := range needs {
		_, err := exec.LookPath(need)
		files, _ := filepath.Glob(need)
		if err != nil && len(files) == 0 && (need != "other-users" || rootAlone) {
			lacking = append(lacking, need)
		}
	}
	return lacking
}

// WriteCertificate writes a self-signed certificate and its key to a folder.
func WriteCertificate(dir string) {
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{ServerEnd}, // Caddy takes no certificate without names
	}
	certificate := must.Get(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	private := must.Get(x509.MarshalPKCS8PrivateKey(key))
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	must.Write(dir+"/cert.pem", string(text))
}
