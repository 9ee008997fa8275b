package images

import (
	"archive/tar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// base is a file system in the making: an image of a name that stands in FROM.
type base struct {
	t       *testing.T
	archive *tar.Writer
	has     map[string]bool
}

// base makes an image; changes are a Dockerfile's instructions
// (podman takes one variable in each ENV).
func (p *podman) base(t *testing.T, name string, fill func(*base), changes ...string) {
	t.Helper()
	file, err := os.CreateTemp(p.dir, "base*.tar")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	b := &base{t, tar.NewWriter(file), map[string]bool{}}
	b.program("/bin/sh", "/bin/sh")
	b.add("tmp/", "", 0o1777)
	b.text("/etc/passwd", "root:x:0:0::/:/bin/sh\nhaproxy:x:99:99::/:/bin/sh\nnginx:x:101:101::/:/bin/sh\nwww-data:x:33:33::/:/bin/sh\n", 0o644)
	b.text("/etc/group", "root:x:0:\nhaproxy:x:99:\nnginx:x:101:\nwww-data:x:33:\n", 0o644)
	fill(b)
	if err := b.archive.Close(); err != nil {
		t.Fatal(err)
	}
	words := []string{"import", "-q"}
	for _, change := range changes {
		words = append(words, "--change", change)
	}
	p.must(t, append(words, file.Name(), "localhost/"+name)...)
}

func (b *base) add(name, content string, mode int64) {
	b.t.Helper()
	if b.has[name] {
		return
	}
	b.has[name] = true
	err := b.archive.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(content))})
	if _, err2 := b.archive.Write([]byte(content)); err != nil || err2 != nil {
		b.t.Fatal(err, err2)
	}
}

// text adds a file.
func (b *base) text(path, content string, mode int64) {
	b.t.Helper()
	b.add(strings.TrimPrefix(path, "/"), content, mode)
}

// program adds one of this machine's, under another name perhaps, with its libraries.
func (b *base) program(path, from string) {
	b.t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		b.t.Fatal(err)
	}
	b.text(path, string(content), 0o755)
	b.libraries(from)
}

// libraries adds those that a program or library needs.
func (b *base) libraries(of string) {
	b.t.Helper()
	for _, m := range regexp.MustCompile(`(/\S+) \(0x`).FindAllStringSubmatch(output(b.t, "ldd", of), -1) {
		content, err := os.ReadFile(m[1])
		if err != nil {
			b.t.Fatal(err)
		}
		b.text(m[1], string(content), 0o755)
	}
}

// golang stands in for golang:1.26: the machine's own Go, which the volumes bring.
func (p *podman) golang(t *testing.T) (volumes []string) {
	t.Helper()
	path := needs(t, "go", "make")
	p.base(t, "golang:1.26", func(b *base) { b.program("/usr/bin/make", path[1]) },
		"ENV PATH=/usr/local/go/bin:/usr/bin:/bin", "ENV HOME=/root", "ENV GOPATH=/go", "ENV GOPROXY=off", "ENV GOTOOLCHAIN=local")
	dirs := strings.Fields(output(t, "go", "env", "GOROOT", "GOMODCACHE", "GOCACHE"))
	return []string{"-v", dirs[0] + ":/usr/local/go:ro", "-v", dirs[1] + ":/go/pkg/mod:ro", "-v", dirs[2] + ":/root/.cache/go-build"}
}

// haproxy stands in for haproxy:3.2. The official entrypoint script adds -W and -db,
// too: a master that stays in the foreground, and one worker.
func (p *podman) haproxy(t *testing.T) {
	path := needs(t, "haproxy")
	p.base(t, "haproxy:3.2", func(b *base) {
		b.program("/usr/local/sbin/haproxy", path[0])
		b.text("/usr/local/bin/docker-entrypoint.sh", `#!/bin/sh
if [ "$1" = haproxy ]; then
	shift
	exec haproxy -W -db "$@"
fi
exec "$@"
`, 0o755)
	}, "ENV PATH=/usr/local/sbin:/usr/local/bin:/bin", "USER haproxy", "STOPSIGNAL SIGUSR1",
		`ENTRYPOINT ["docker-entrypoint.sh"]`, `CMD ["haproxy", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]`)
}

// nginx stands in for nginx:1.29: a script that runs other scripts before nginx, and
// a configuration that includes those of conf.d.
func (p *podman) nginx(t *testing.T) {
	path := needs(t, "nginx")
	p.base(t, "nginx:1.29", func(b *base) {
		b.program("/usr/sbin/nginx", path[0])
		b.text("/docker-entrypoint.sh", `#!/bin/sh
set -e
for script in /docker-entrypoint.d/*.sh; do
	"$script"
done
exec "$@"
`, 0o755)
		b.text("/docker-entrypoint.d/10-say.sh", "#!/bin/sh\necho ready for start up\n", 0o755)
		for _, dir := range []string{"run/", "var/log/nginx/", "var/lib/nginx/"} {
			b.add(dir, "", 0o755)
		}
		b.text("/etc/nginx/nginx.conf", `user nginx;
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

// temurin stands in for eclipse-temurin:21, with and without the compiler: the
// machine's own Java, which the volumes bring, since it is large.
func (p *podman) temurin(t *testing.T) (volumes []string) {
	path, err := filepath.EvalSymlinks(needs(t, "java")[0])
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Dir(filepath.Dir(path))
	if modules := output(t, path, "--list-modules"); !strings.Contains(modules, "jdk.compiler@") {
		t.Skip("java has no jdk.compiler")
	}
	for _, name := range []string{"eclipse-temurin:21", "eclipse-temurin:21-jre"} {
		p.base(t, name, func(b *base) {
			b.libraries(path)
			b.libraries(home + "/lib/server/libjvm.so")
			b.libraries(home + "/lib/libnet.so")
			if !strings.HasSuffix(name, "-jre") {
				b.text("/usr/local/bin/javac", "#!/bin/sh\nexec java -m jdk.compiler/com.sun.tools.javac.Main \"$@\"\n", 0o755)
			}
		}, "ENV PATH=/opt/java/openjdk/bin:/usr/local/bin:/bin", "ENV JAVA_HOME=/opt/java/openjdk")
	}
	volumes = []string{"-v", home + ":/opt/java/openjdk:ro"}
	settings, _ := filepath.Glob("/etc/java-*-openjdk") // where Debian's has links to
	for _, dir := range settings {
		volumes = append(volumes, "-v", dir+":"+dir+":ro")
	}
	return volumes
}

// fpm stands in for php:8.4-fpm, whose settings are in /usr/local/etc.
func (p *podman) fpm(t *testing.T) {
	found, _ := filepath.Glob("/usr/sbin/php-fpm?*")
	found = slices.DeleteFunc(found, func(path string) bool { _, err := exec.LookPath(path); return err != nil })
	if len(found) == 0 {
		t.Skip("php-fpm is not installed")
	}
	p.base(t, "php:8.4-fpm", func(b *base) {
		b.program("/usr/local/sbin/php-fpm", found[0])
		b.text("/usr/local/bin/docker-php-entrypoint", `#!/bin/sh
if [ "${1#-}" != "$1" ]; then
	exec php "$@"
fi
exec "$@"
`, 0o755)
		version := strings.TrimPrefix(found[0], "/usr/sbin/php-fpm")
		b.text("/etc/php/"+version+"/fpm/php-fpm.conf", "[global]\nerror_log = /proc/self/fd/2\ndaemonize = no\ninclude = /usr/local/etc/php-fpm.d/*.conf\n", 0o644)
		b.text("/usr/local/etc/php-fpm.d/www.conf", "[www]\nuser = www-data\ngroup = www-data\nlisten = 9000\npm = dynamic\npm.max_children = 5\npm.start_servers = 2\npm.min_spare_servers = 1\npm.max_spare_servers = 3\n", 0o644)
	}, "ENV PATH=/usr/local/sbin:/usr/local/bin:/bin", "STOPSIGNAL SIGQUIT", "WORKDIR /var/www/html",
		`ENTRYPOINT ["docker-php-entrypoint"]`, `CMD ["php-fpm"]`)
}
