import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/** Server has no shutdown hook: TERM ends the server with all requests in flight. */
public class Server {
	public static void main(String[] args) throws Exception {
		var server = HttpServer.create(new InetSocketAddress(8080), 128);
		server.setExecutor(Executors.newCachedThreadPool());
		server.createContext("/", exchange -> {
			if (exchange.getRequestURI().getPath().equals("/slow")) {
				try {
					Thread.sleep(4000);
				} catch (InterruptedException e) {
					return;
				}
			}
			var answer = "ok\n".getBytes();
			exchange.sendResponseHeaders(200, answer.length);
			try (var body = exchange.getResponseBody()) {
				body.write(answer);
			}
		});
		server.start();
	}
}
