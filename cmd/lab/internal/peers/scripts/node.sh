# needs node
# Node with server.close at TERM. Arguments: http, https, h2c or h2; with "abrupt" TERM kills it.
# USR2 is --on-stop=USR2 of docs/servers.md.
cat >server.js <<'END'
// A server that answers as answer in server.go. Arguments: the file of the certificate, a word
// for the protocol, and "abrupt": without a handler for TERM.
const fs = require('fs')
const [pem, kind, abrupt] = process.argv.slice(2)

async function answer(request, response) {
  const query = new URL(request.url, 'http://x').searchParams
  const number = name => Number(query.get(name) || 0)
  const sleep = name => new Promise(done => {
    const [, digits, unit] = /^([\d.]+)(ms|s)$/.exec(query.get(name) || '0s')
    setTimeout(done, digits * (unit === 's' ? 1000 : 1))
  })
  for await (const piece of request) void piece
  if (query.has('name')) console.log(query.get('name'))
  await sleep('think')
  const piece = 'x'.repeat(Math.max(number('size'), 6))
  if (query.has('each')) {
    for (let i = 0; i < number('count'); i++) {
      response.write(piece)
      await sleep('each')
    }
    return response.end()
  }
  if (!query.has('pause')) return response.end(piece)
  response.write(piece.slice(0, piece.length / 2))
  await sleep('pause')
  response.end(piece.slice(piece.length / 2))
}

const key = pem && fs.readFileSync(pem)
const options = { key, cert: key, allowHTTP1: true }
const server = {
  http: () => require('http').createServer(answer),
  https: () => require('https').createServer(options, answer),
  h2c: () => require('http2').createServer(answer),
  h2: () => require('http2').createSecureServer(options, answer)
}[kind]()
server.keepAliveTimeout = 300000
let leaving = false
process.on('SIGUSR2', () => { leaving = true })
server.prependListener('request', (request, response) => {
  if (leaving && request.httpVersionMajor === 1) response.setHeader('Connection', 'close')
})

const sessions = new Set()
server.on('session', session => {
  sessions.add(session)
  session.on('close', () => sessions.delete(session))
})
if (!abrupt) process.on('SIGTERM', () => {
  server.close()
  for (const session of sessions) session.close()
})
server.listen(8080, process.env.HOST || '0.0.0.0')
END
exec node server.js cert.pem "$@"
