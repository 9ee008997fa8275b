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
        if (args.length > 0) Runtime.getRuntime().addShutdownHook(new Thread(() -> server.stop(8)));
        server.start();
    }
}
