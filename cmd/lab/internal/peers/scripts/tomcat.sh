# needs java /usr/share/tomcat10/bin/catalina.sh
mkdir -p conf webapps/ROOT temp
cat >conf/server.xml <<END
<Server port="-1">
  <Service name="Catalina">
    <Connector port="8080" address="${HOST:-0.0.0.0}" maxKeepAliveRequests="-1" keepAliveTimeout="300000"/>
    <Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps"/></Engine>
  </Service>
</Server>
END
cat >conf/web.xml <<'END'
<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="6.0">
  <servlet>
    <servlet-name>jsp</servlet-name>
    <servlet-class>org.apache.jasper.servlet.JspServlet</servlet-class>
    <load-on-startup>1</load-on-startup>
  </servlet>
  <servlet-mapping><servlet-name>jsp</servlet-name><url-pattern>/app</url-pattern></servlet-mapping>
</web-app>
END
cat >webapps/ROOT/app <<'END'
<% System.out.println(request.getParameter("name"));
Thread.sleep((long) Double.parseDouble(request.getParameter("think").replace("ms", ""))); %>served
END
export CATALINA_BASE="$PWD" JAVA_OPTS=-XX:TieredStopAtLevel=1
exec /usr/share/tomcat10/bin/catalina.sh run
