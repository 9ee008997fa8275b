const http = require("http")
const server = http.createServer((request, answer) => {
    answer.setHeader("Connection", "close")
    http.get("http://127.0.0.1:BACKEND/", { agent: false }, (from) => from.pipe(answer))
}).listen(PORT, "127.0.0.1")
if (process.argv[2] == "graceful") process.on("SIGTERM", () => server.close())
