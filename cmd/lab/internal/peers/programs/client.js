// Sends a request for each line of standard input, a number, a method and a path, and prints the
// number and an error, if any. New connections go to the address in the file "target".
const { readFileSync } = require('fs')
const { Agent, request } = require('undici')
const lookup = (_, options, done) => {
  const address = readFileSync('target', 'utf8').split(' ')[0]
  options.all ? done(null, [{ address, family: 4 }]) : done(null, address, 4)
}
const dispatcher = new Agent({ connections: 24, pipelining: 1, connect: { lookup } })
require('readline').createInterface({ input: process.stdin }).on('line', async line => {
  const [number, method, path] = line.split(' ')
  try {
    const answer = await request('http://lab:8080' + path, { method, body: method === 'POST' ? 'duck' : null, dispatcher })
    await answer.body.text()
    console.log(number, answer.statusCode === 200 ? '' : answer.statusCode)
  } catch (err) {
    console.log(number, String(err))
  }
})
