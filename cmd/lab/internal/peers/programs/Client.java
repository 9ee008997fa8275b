// Sends a request for each line of standard input, a number, a method and a path, and prints the
// number and an error, if any. New connections go to the address in the file "target".
import java.net.InetAddress;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import org.apache.hc.client5.http.*;
import org.apache.hc.client5.http.classic.methods.HttpUriRequestBase;
import org.apache.hc.client5.http.impl.classic.*;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManagerBuilder;
import org.apache.hc.core5.http.io.entity.*;

public class Client {
    public static void main(String[] args) throws Exception {
        var resolver = new DnsResolver() {
            public InetAddress[] resolve(String host) {
                try {
                    return new InetAddress[] {InetAddress.getByName(Files.readString(Path.of("target")).split(" ")[0])};
                } catch (java.io.IOException e) {
                    throw new RuntimeException(e);
                }
            }
            public String resolveCanonicalHostname(String host) { return host; }
        };
        var pool = PoolingHttpClientConnectionManagerBuilder.create()
            .setDnsResolver(resolver).setMaxConnPerRoute(24).setMaxConnTotal(24).build();
        var client = HttpClients.custom().setConnectionManager(pool).build();
        var threads = Executors.newCachedThreadPool();
        var in = new Scanner(System.in);
        while (in.hasNextLine()) {
            var words = in.nextLine().split(" ");
            threads.execute(() -> {
                var error = "";
                try {
                    var request = new HttpUriRequestBase(words[1], java.net.URI.create("http://lab:8080" + words[2]));
                    if (words[1].equals("POST")) {
                        request.setEntity(new StringEntity("duck"));
                    }
                    var status = client.execute(request, answer -> {
                        EntityUtils.consume(answer.getEntity());
                        return answer.getCode();
                    });
                    error = status == 200 ? "" : "status " + status;
                } catch (Exception e) {
                    error = e.toString().replace("\n", " ");
                }
                System.out.println(words[0] + " " + error);
            });
        }
        System.exit(0);
    }
}
