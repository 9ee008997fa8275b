module.exports = {apps: [{script: "server.js", kill_timeout: 25000}]}
