package truth

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Databases, caches and receivers of logs.
var (
	postgres    = &server{needs: postgresNeeds, command: postgresCommand("off")}
	postgresTLS = &server{needs: postgresNeeds, command: withCertificate(postgresCommand("on")), tls: true}
	redisServer = &server{needs: []string{"redis-server"}, command: configured(nil, "redis-server", "--port", "PORT",
		"--dir", "DIR", "--save", "", "--protected-mode", "no", "--enable-debug-command", "yes")}
	memcached = &server{needs: []string{"memcached"}, command: configured(nil, "memcached", "-u", "root", "-p", "PORT", "-U", "0")}
	rsyslog   = &server{needs: []string{"rsyslogd"}, command: configured(map[string]string{"conf": rsyslogConfig}, "rsyslogd", "-n", "-f", "DIR/conf", "-i", "DIR/pid")}
)

const rsyslogConfig = `
global(net.enableDNS="off")
module(load="imtcp")
input(type="imtcp" port="PORT")
action(type="omfile" file="DIR/log")
`

// postgresPrograms is the folder of PostgreSQL's programs in Debian's packages. Only psql and
// the like are in PATH.
var postgresPrograms = func() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(found) == 0 {
		return "/usr/bin"
	}
	return found[len(found)-1]
}()

var postgresNeeds = []string{postgresPrograms + "/initdb", postgresPrograms + "/postgres", "setpriv"}

// asPostgres runs a command as the user postgres: PostgreSQL refuses to run as root.
func asPostgres(words ...string) []string {
	return append([]string{"setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"}, words...)
}

// postgresCommand returns the command of a server with a new database.
func postgresCommand(ssl string) func(at place) ([]string, error) {
	return func(at place) ([]string, error) {
		template, err := postgresTemplate(filepath.Dir(at.dir))
		if err != nil {
			return nil, err
		}
		data := at.dir + "/data"
		if text, err := exec.Command("cp", "-a", template, data).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("cannot copy the database: %w\n%s", err, text)
		}
		certificate := at.dir + "/cert.pem"
		if ssl == "on" {
			if err := chownPostgres(certificate); err != nil {
				return nil, err
			}
		}
		return asPostgres(postgresPrograms+"/postgres", "-D", data, "-p", fmt.Sprint(port),
			"-c", "listen_addresses=*", "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "shared_buffers=8MB",
			"-c", "ssl="+ssl, "-c", "ssl_cert_file="+certificate, "-c", "ssl_key_file="+certificate), nil
	}
}

// postgresTemplate returns a data folder, to be copied by all trials. The first trial makes
// the folder, and the others wait.
func postgresTemplate(dir string) (string, error) {
	lock, err := os.OpenFile(dir+"/postgres.lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	template := dir + "/postgres"
	data := template + "/data"
	if _, err := os.Stat(template + "/done"); err == nil {
		return data, nil
	}
	if err := os.MkdirAll(template, 0o755); err != nil {
		return "", err
	}
	if err := chownPostgres(template); err != nil {
		return "", err
	}
	words := asPostgres(postgresPrograms+"/initdb", "--no-sync", "--auth=trust", "--username=postgres", "--locale=C", "--wal-segsize=1", "-D", data)
	if text, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot initialize the database: %w\n%s", err, text)
	}
	if err := os.WriteFile(data+"/pg_hba.conf", []byte("host all all all trust\n"), 0o644); err != nil {
		return "", err
	}
	return data, os.WriteFile(template+"/done", nil, 0o644)
}

func chownPostgres(path string) error {
	owner, err := user.Lookup("postgres")
	if err != nil {
		return err
	}
	uid, _ := strconv.Atoi(owner.Uid) // numbers on Linux
	gid, _ := strconv.Atoi(owner.Gid)
	return os.Chown(path, uid, gid)
}
