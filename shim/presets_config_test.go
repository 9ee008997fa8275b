package shim

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// The servers of TestPresetsWeb, each with a configuration that has it ask at
// the gate before it answers.
var webs = map[string]*web{
	"haproxy": {
		preset: "haproxy", needs: []string{"haproxy"},
		files: map[string]string{"cfg": haproxyProxy},
		words: "haproxy -db -f DIR/cfg",
	},
	"haproxy-master": { // as the official image starts it
		preset: "haproxy", needs: []string{"haproxy"},
		files: map[string]string{"cfg": haproxyProxy},
		words: "haproxy -W -db -f DIR/cfg", ready: masterWaits,
	},
	"nginx": {
		preset: "nginx", needs: []string{"nginx"},
		files: map[string]string{"conf": `
user root;
pid DIR/nginx.pid;
error_log stderr error;
events {}
http {
    access_log off;
    client_body_temp_path DIR/body;
    proxy_temp_path DIR/proxy;
    fastcgi_temp_path DIR/fastcgi;
    uwsgi_temp_path DIR/uwsgi;
    scgi_temp_path DIR/scgi;
    server {
        listen 127.0.0.1:PORT;
        location / { proxy_pass http://127.0.0.1:GATE; }
    }
}
`},
		words: "nginx -c DIR/conf -g daemon~off;",
	},
	"httpd": {
		preset: "httpd", needs: []string{"apache2"},
		files: map[string]string{"conf": `
ServerRoot DIR
ServerName localhost
DefaultRuntimeDir DIR
PidFile DIR/pid
ErrorLog /dev/stderr
Listen 127.0.0.1:PORT
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
ProxyPass / http://127.0.0.1:GATE/
`},
		words: "apache2 -DFOREGROUND -f DIR/conf",
	},
	"php-fpm": {
		preset: "php-fpm", needs: []string{phpFPM},
		files: map[string]string{"conf": phpConfig + "process_control_timeout = 10s\n" + phpPool, "slow.php": phpScript},
		words: phpFPM + " -R -F -y DIR/conf", get: fastCGI,
	},
	"uwsgi": {
		preset: "uwsgi", needs: []string{"uwsgi"},
		files: map[string]string{"app.py": pythonApp},
		words: uwsgiWords + " --hook-master-start=unix_signal:15~gracefully_kill_them_all",
	},
	"gunicorn": {
		preset: "gunicorn", needs: []string{"gunicorn"},
		files: map[string]string{"app.py": pythonApp},
		words: "gunicorn --chdir DIR -b 127.0.0.1:PORT app",
	},
	"unicorn": {
		preset: "unicorn", needs: []string{"unicorn"},
		files: map[string]string{"config.ru": rackApp},
		words: "unicorn -l 127.0.0.1:PORT DIR/config.ru",
	},
	"puma": {
		preset: "puma", needs: []string{"puma"},
		files: map[string]string{"config.ru": rackApp},
		words: "puma -b tcp://127.0.0.1:PORT DIR/config.ru",
	},
	"caddy": {
		preset: "caddy", needs: []string{"caddy"},
		files: map[string]string{"Caddyfile": `
{
	admin off
}
http://127.0.0.1:PORT {
	reverse_proxy 127.0.0.1:GATE
}
`},
		words: "caddy run --config DIR/Caddyfile",
	},
	"php-fpm-unset": { // without process_control_timeout
		preset: "php-fpm", needs: []string{phpFPM},
		files: map[string]string{"conf": phpConfig + phpPool, "slow.php": phpScript},
		words: phpFPM + " -R -F -y DIR/conf", get: fastCGI, cuts: true, held: true,
	},
	"uwsgi-die-on-term": {
		preset: "uwsgi", needs: []string{"uwsgi"},
		files: map[string]string{"app.py": pythonApp},
		words: uwsgiWords + " --die-on-term", cuts: true,
	},
	"uwsgi-bare": { // TERM reloads
		preset: "uwsgi", needs: []string{"uwsgi"},
		files: map[string]string{"app.py": pythonApp},
		words: uwsgiWords, cuts: true, runs: true,
	},
	"go": {
		preset: "go", words: "SELF helper web PORT GATE graceful",
	},
	"go-bare": { // without a handler
		preset: "go", words: "SELF helper web PORT GATE", cuts: true, exit: 143,
	},
	"varnish": {
		preset: "varnish", needs: []string{"varnishd", "gcc"},
		files: map[string]string{"cwd/x": ""},
		words: "varnishd -F -j none -a 127.0.0.1:PORT -b 127.0.0.1:GATE -n DIR/cwd", cuts: true, held: true,
	},
	"node": {
		preset: "node", needs: []string{"node"},
		files: map[string]string{"server.js": nodeApp + "process.on('SIGTERM', () => server.close())"},
		words: "node DIR/server.js",
	},
	"node-bare": { // without a handler
		preset: "node", needs: []string{"node"},
		files: map[string]string{"server.js": nodeApp},
		words: "node DIR/server.js", cuts: true, held: true, exit: 143,
	},
	"java": {
		preset: "java", needs: []string{"java"}, brought: []string{javaCompiler},
		files: map[string]string{"Slow.java": javaApp}, setup: compileJava,
		words: "java -Xshare:auto -XX:TieredStopAtLevel=1 -cp DIR Slow hook",
	},
	"java-bare": { // without a shutdown hook
		preset: "java", needs: []string{"java"}, brought: []string{javaCompiler},
		files: map[string]string{"Slow.java": javaApp}, setup: compileJava,
		words: "java -Xshare:auto -XX:TieredStopAtLevel=1 -cp DIR Slow", cuts: true,
	},
	"tomcat": {
		preset: "tomcat", needs: []string{"java"}, brought: []string{tomcatScript},
		files: map[string]string{"conf/server.xml": tomcatServer, "webapps/ROOT/slow.jsp": tomcatPage, "conf/web.xml": tomcatWeb},
		words: "env CATALINA_BASE=DIR JAVA_OPTS=-XX:TieredStopAtLevel=1 " + tomcatScript + " run",
	},
}

// masterWaits is when HAProxy's master has executed itself anew to wait for its
// worker, which serves before that. What it is told in between it forgets.
// (Since 3.1 it does without.)
func masterWaits(b *box) {
	dir := fmt.Sprintf("/proc/%d/", b.commandPID())
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		env, _ := os.ReadFile(dir + "environ")
		status, _ := os.ReadFile(dir + "status")
		if bytes.Contains(env, []byte("HAPROXY_MWORKER_WAIT_ONLY=1")) && bytes.Contains(status, []byte("SigBlk:\t0000000000000000\n")) {
			return
		}
	}
}

const haproxyProxy = `
defaults
    mode http
    timeout client 10s
    timeout connect 1s
    timeout server 10s
listen web
    bind 127.0.0.1:PORT
    server gate 127.0.0.1:GATE
`

// phpFPM is whichever version is installed; Debian has it in the name.
var phpFPM = func() string {
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin"} {
		if found, _ := filepath.Glob(dir + "/php-fpm*"); len(found) > 0 {
			return found[len(found)-1]
		}
	}
	return "php-fpm"
}()

const phpConfig = `
[global]
error_log = /dev/stderr
daemonize = no
`

const phpPool = `
[www]
listen = 127.0.0.1:PORT
pm = static
pm.max_children = 2
`

const phpScript = `<?php echo file_get_contents("http://127.0.0.1:GATE/");`

const uwsgiWords = "uwsgi --plugin=python3 --http-socket=127.0.0.1:PORT --master --processes=1 --chdir=DIR --wsgi=app"

const pythonApp = `
import urllib.request

def application(environ, start_response):
    answer = urllib.request.urlopen("http://127.0.0.1:GATE/").read()
    start_response("200 OK", [("Content-Length", str(len(answer)))])
    return [answer]
`

const rackApp = `
require "net/http"
run proc { |env| [200, {}, [Net::HTTP.get("127.0.0.1", "/", GATE)]] }
`

const nodeApp = `
const http = require("http")
const server = http.createServer((request, answer) => {
    answer.setHeader("Connection", "close")
    http.get("http://127.0.0.1:GATE/", { agent: false }, (from) => from.pipe(answer))
}).listen(PORT, "127.0.0.1")
`

const javaApp = `
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.net.URL;

public class Slow {
    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", PORT), 0);
        server.createContext("/", exchange -> {
            byte[] answer = new URL("http://127.0.0.1:GATE/").openStream().readAllBytes();
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        if (args.length > 0) Runtime.getRuntime().addShutdownHook(new Thread(() -> server.stop(2)));
        server.start();
    }
}
`

const tomcatServer = `
<Server port="-1">
  <Service name="Catalina">
    <Connector port="PORT" address="127.0.0.1"/>
    <Engine name="Catalina" defaultHost="localhost">
      <Host name="localhost" appBase="webapps"/>
    </Engine>
  </Service>
</Server>
`

const tomcatWeb = `
<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="6.0">
  <servlet>
    <servlet-name>jsp</servlet-name>
    <servlet-class>org.apache.jasper.servlet.JspServlet</servlet-class>
  </servlet>
  <servlet-mapping>
    <servlet-name>jsp</servlet-name>
    <url-pattern>*.jsp</url-pattern>
  </servlet-mapping>
</web-app>
`

const tomcatPage = `<%= new String(new java.net.URL("http://127.0.0.1:GATE/").openStream().readAllBytes()) %>`

const (
	tomcatScript = "/usr/share/tomcat10/bin/catalina.sh"
	javaCompiler = "/usr/share/java/eclipse-jdt-core.jar"
)

// compileJava needs no more than a runtime, thanks to the compiler that Tomcat
// brings along for its pages.
func compileJava(s *site) {
	compile := exec.Command("java", "-cp", javaCompiler, "org.eclipse.jdt.internal.compiler.batch.Main",
		"-17", "-proc:none", "-nowarn", s.dir+"/Slow.java")
	if said, err := compile.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, said)
	}
}
