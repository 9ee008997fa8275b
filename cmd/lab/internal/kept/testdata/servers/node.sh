# needs node
exec node -e "
require('http').createServer((request, response) => {
  const url = new URL(request.url, 'http://lab')
  console.log(url.searchParams.get('name'))
  request.resume()
  setTimeout(() => response.end('served'), parseFloat(url.searchParams.get('think')))
}).listen(8080, '$HOST').keepAliveTimeout = 300000"
