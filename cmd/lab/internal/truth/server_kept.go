package truth

import (
	"os"
	"strings"
)

// Servers of keptCases.
var (
	// haproxySparing closes a kept connection after the next answer only.
	haproxySparing = front("haproxy", strings.Replace(haproxyConfig(""), "    mode http\n", "    mode http\n    option idle-close-on-response\n", 1), false, "-db", "-f", "DIR/front")
	apacheWorker   = apacheWith("worker", "StartServers 1\nServerLimit 2\nThreadsPerChild 64\n")
	apachePrefork  = apacheWith("prefork", "StartServers 40\nMinSpareServers 40\nMaxSpareServers 60\n")
	puma           = &server{needs: []string{"puma"}, command: configured(map[string]string{"config.ru": rackApp},
		"puma", "--quiet", "--threads=32:32", "--bind=tcp://0.0.0.0:PORT", "DIR/config.ru")}
	gunicornKept = gunicorn("--worker-class=gthread", "--workers=1", "--threads=32", "--keep-alive=300")
	uwsgiPool    = uwsgi("--http11-socket=:PORT", "--add-header=Connection: keep-alive", "--so-keepalive", "--processes=32")
	fpmPool      = fpmWith("pm.max_children = 32")
	tomcat       = &server{needs: []string{"java", tomcatHome + "/bin/catalina.sh"}, env: []string{"JAVA_OPTS=-XX:TieredStopAtLevel=1"},
		command: configured(map[string]string{"server.xml": tomcatServer, "app.jsp": tomcatPage, "web.xml": tomcatWeb}, "sh", "-c",
			"mkdir -p DIR/conf DIR/webapps/ROOT DIR/temp; cp DIR/server.xml DIR/web.xml DIR/conf; cp DIR/app.jsp DIR/webapps/ROOT/app; CATALINA_BASE=DIR exec "+tomcatHome+"/bin/catalina.sh run")}
)

const tomcatHome = "/usr/share/tomcat10"

// apacheWith returns Apache with another MPM than event, and a number of processes.
func apacheWith(mpm, processes string) *server {
	plain := apacheFront("")
	return &server{needs: plain.needs, command: func(at place) ([]string, error) {
		words, err := plain.command(at)
		if err != nil {
			return nil, err
		}
		return words, edit(at.dir+"/front", "mpm_event_module", "mpm_"+mpm+"_module", "mod_mpm_event", "mod_mpm_"+mpm,
			"StartServers 1\nServerLimit 2\nThreadsPerChild 64\n", processes)
	}}
}

// fpmWith returns php-fpm with another number of children.
func fpmWith(children string) *server {
	return &server{needs: fpm.needs, command: func(at place) ([]string, error) {
		words, err := fpm.command(at)
		if err != nil {
			return nil, err
		}
		return words, edit(at.dir+"/fpm.conf", "pm.max_children = 8", children)
	}}
}

const rackApp = `
think = proc { |env| env["QUERY_STRING"][/think=(\d+)ms/, 1].to_i / 1000.0 }
run proc { |env| sleep think.(env); [200, { "Content-Length" => "6" }, ["served"]] }
`

const tomcatServer = `
<Server port="-1">
  <Service name="Catalina">
    <Connector port="PORT" address="0.0.0.0" maxKeepAliveRequests="-1" keepAliveTimeout="300000"/>
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
    <load-on-startup>1</load-on-startup>
  </servlet>
  <servlet-mapping>
    <servlet-name>jsp</servlet-name>
    <url-pattern>/app</url-pattern>
  </servlet-mapping>
</web-app>
`

const tomcatPage = `<% Thread.sleep(Long.parseLong(request.getQueryString().replaceAll("[^0-9]", ""))); %>served`

// edit replaces pairs of texts in a file.
func edit(path string, pairs ...string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o644)
}
