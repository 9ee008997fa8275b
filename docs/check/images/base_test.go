package images

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/docs/check/internal/podman"
)

// base is a stand-in for an image that a FROM names.
type base struct {
	t *testing.T
	*podman.Image
}

// base makes an image with a shell and users. changes are instructions of a Dockerfile.
func (e *engine) base(t *testing.T, name string, fill func(base), changes ...string) {
	t.Helper()
	e.Import(t, name, func(i *podman.Image) {
		b := base{t, i}
		b.program("/bin/sh", "/bin/sh")
		b.Add("tmp/", "", 0o1777)
		b.Add("/etc/passwd", "root:x:0:0::/:/bin/sh\nhaproxy:x:99:99::/:/bin/sh\nnginx:x:101:101::/:/bin/sh\nwww-data:x:33:33::/:/bin/sh\n", 0o644)
		b.Add("/etc/group", "root:x:0:\nhaproxy:x:99:\nnginx:x:101:\nwww-data:x:33:\n", 0o644)
		fill(b)
	}, changes...)
}

// program adds a program of this machine and the libraries of the program.
func (b base) program(path, from string) {
	b.Copy(path, from)
	b.libraries(from)
}

// libraries adds the libraries of a program or a library.
func (b base) libraries(file string) {
	b.t.Helper()
	for _, m := range regexp.MustCompile(`(/\S+) \(0x`).FindAllStringSubmatch(output(b.t, "ldd", file), -1) {
		b.Copy(m[1], m[1])
	}
}

// golang stands in for golang:1.26. The volumes bring this machine's Go.
func (e *engine) golang(t *testing.T) (volumes []string) {
	t.Helper()
	path := podman.Needs(t, "go", "make")
	e.base(t, "golang:1.26", func(b base) { b.program("/usr/bin/make", path[1]) },
		"ENV PATH=/usr/local/go/bin:/usr/bin:/bin", "ENV HOME=/root", "ENV GOPATH=/go", "ENV GOPROXY=off", "ENV GOTOOLCHAIN=local")
	dirs := strings.Fields(output(t, "go", "env", "GOROOT", "GOMODCACHE", "GOCACHE"))
	return []string{"-v", dirs[0] + ":/usr/local/go:ro", "-v", dirs[1] + ":/go/pkg/mod:ro", "-v", dirs[2] + ":/root/.cache/go-build"}
}

// haproxy stands in for haproxy:3.2. As the official entrypoint script does, the script
// adds -W and -db: a master in the foreground and one worker.
func (e *engine) haproxy(t *testing.T) {
	path := podman.Needs(t, "haproxy")
	e.base(t, "haproxy:3.2", func(b base) {
		b.program("/usr/local/sbin/haproxy", path[0])
		b.Add("/usr/local/bin/docker-entrypoint.sh", `#!/bin/sh
if [ "$1" = haproxy ]; then
	shift
	exec haproxy -W -db "$@"
fi
exec "$@"
`, 0o755)
	}, "ENV PATH=/usr/local/sbin:/usr/local/bin:/bin", "USER haproxy", "STOPSIGNAL SIGUSR1",
		`ENTRYPOINT ["docker-entrypoint.sh"]`, `CMD ["haproxy", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]`)
}

// nginx stands in for nginx:1.29: a script that runs other scripts before nginx, and a
// configuration that includes the files of conf.d.
func (e *engine) nginx(t *testing.T) {
	path := podman.Needs(t, "nginx")
	e.base(t, "nginx:1.29", func(b base) {
		b.program("/usr/sbin/nginx", path[0])
		b.Add("/docker-entrypoint.sh", `#!/bin/sh
set -e
for script in /docker-entrypoint.d/*.sh; do
	"$script"
done
exec "$@"
`, 0o755)
		b.Add("/docker-entrypoint.d/10-say.sh", "#!/bin/sh\necho ready for start up\n", 0o755)
		for _, dir := range []string{"run/", "var/log/nginx/", "var/lib/nginx/"} {
			b.Add(dir, "", 0o755)
		}
		b.Add("/etc/nginx/nginx.conf", `user nginx;
worker_processes 2;
pid /run/nginx.pid;
error_log /dev/stderr notice;
events {}
http {
	access_log off;
	include /etc/nginx/conf.d/*.conf;
}
`, 0o644)
	}, "ENV PATH=/usr/sbin:/bin", "STOPSIGNAL SIGQUIT",
		`ENTRYPOINT ["/docker-entrypoint.sh"]`, `CMD ["nginx", "-g", "daemon off;"]`)
}

// temurin stands in for eclipse-temurin:21, with and without the compiler. The volumes
// bring this machine's Java, which is too large to copy.
func (e *engine) temurin(t *testing.T) (volumes []string) {
	path, err := filepath.EvalSymlinks(podman.Needs(t, "java")[0])
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Dir(filepath.Dir(path))
	if modules := output(t, path, "--list-modules"); !strings.Contains(modules, "jdk.compiler@") {
		t.Skip("java has no jdk.compiler")
	}
	for _, name := range []string{"eclipse-temurin:21", "eclipse-temurin:21-jre"} {
		e.base(t, name, func(b base) {
			b.libraries(path)
			b.libraries(home + "/lib/server/libjvm.so")
			b.libraries(home + "/lib/libnet.so")
			if !strings.HasSuffix(name, "-jre") {
				b.Add("/usr/local/bin/javac", "#!/bin/sh\nexec java -m jdk.compiler/com.sun.tools.javac.Main \"$@\"\n", 0o755)
			}
		}, "ENV PATH=/opt/java/openjdk/bin:/usr/local/bin:/bin", "ENV JAVA_HOME=/opt/java/openjdk")
	}
	volumes = []string{"-v", home + ":/opt/java/openjdk:ro"}
	settings, _ := filepath.Glob("/etc/java-*-openjdk") // Debian's Java links to these files
	for _, dir := range settings {
		volumes = append(volumes, "-v", dir+":"+dir+":ro")
	}
	return volumes
}

// fpm stands in for php:8.4-fpm, with the settings in /usr/local/etc.
func (e *engine) fpm(t *testing.T) {
	found, _ := filepath.Glob("/usr/sbin/php-fpm?*")
	found = slices.DeleteFunc(found, func(path string) bool { _, err := exec.LookPath(path); return err != nil })
	if len(found) == 0 {
		t.Skip("php-fpm is not installed")
	}
	e.base(t, "php:8.4-fpm", func(b base) {
		b.program("/usr/local/sbin/php-fpm", found[0])
		b.Add("/usr/local/bin/docker-php-entrypoint", `#!/bin/sh
if [ "${1#-}" != "$1" ]; then
	exec php "$@"
fi
exec "$@"
`, 0o755)
		version := strings.TrimPrefix(found[0], "/usr/sbin/php-fpm")
		b.Add("/etc/php/"+version+"/fpm/php-fpm.conf", "[global]\nerror_log = /proc/self/fd/2\ndaemonize = no\ninclude = /usr/local/etc/php-fpm.d/*.conf\n", 0o644)
		b.Add("/usr/local/etc/php-fpm.d/www.conf", "[www]\nuser = www-data\ngroup = www-data\nlisten = 9000\npm = dynamic\npm.max_children = 5\npm.start_servers = 2\npm.min_spare_servers = 1\npm.max_spare_servers = 3\n", 0o644)
	}, "ENV PATH=/usr/local/sbin:/usr/local/bin:/bin", "STOPSIGNAL SIGQUIT", "WORKDIR /var/www/html",
		`ENTRYPOINT ["docker-php-entrypoint"]`, `CMD ["php-fpm"]`)
}
