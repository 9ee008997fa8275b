package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Programs and configurations for the servers of TestPresetsWeb.

// awaitMaster waits until HAProxy's master has executed itself again to wait for its worker.
// The worker serves before that, and the master loses signals that arrive in between.
// Since version 3.1 HAProxy does without the second execution, and awaitMaster gives up
// after 3 s.
func awaitMaster(b *box) {
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
    server gate 127.0.0.1:BACKEND
`

// phpFPM is the installed php-fpm; Debian's name includes the version.
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

const phpScript = `<?php echo file_get_contents("http://127.0.0.1:BACKEND/");`

const uwsgiCommand = "uwsgi --plugin=python3 --http-socket=127.0.0.1:PORT --master --processes=1 --chdir=DIR --wsgi=app"

const pythonApp = `
import urllib.request

def application(environ, start_response):
    answer = urllib.request.urlopen("http://127.0.0.1:BACKEND/").read()
    start_response("200 OK", [("Content-Length", str(len(answer)))])
    return [answer]
`

const rackApp = `
require "net/http"
run proc { |env| [200, {}, [Net::HTTP.get("127.0.0.1", "/", BACKEND)]] }
`

const nodeApp = `
const http = require("http")
const server = http.createServer((request, answer) => {
    answer.setHeader("Connection", "close")
    http.get("http://127.0.0.1:BACKEND/", { agent: false }, (from) => from.pipe(answer))
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
            byte[] answer = new URL("http://127.0.0.1:BACKEND/").openStream().readAllBytes();
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

const tomcatPage = `<%= new String(new java.net.URL("http://127.0.0.1:BACKEND/").openStream().readAllBytes()) %>`

const (
	tomcatScript = "/usr/share/tomcat10/bin/catalina.sh"
	javaCompiler = "/usr/share/java/eclipse-jdt-core.jar"
)

// compileJava compiles Slow.java. Tomcat brings a compiler along, so a Java runtime without
// the JDK is enough.
func compileJava(s *site) {
	compile := exec.Command("java", "-cp", javaCompiler, "org.eclipse.jdt.internal.compiler.batch.Main",
		"-17", "-proc:none", "-nowarn", s.dir+"/Slow.java")
	if output, err := compile.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, output)
	}
}
