# needs apache2
# Apache before the upstream, with CONNECT to it. Arguments: the MPM, and "tls".
case $1 in
prefork) processes="StartServers 40
MinSpareServers 40
MaxSpareServers 60" ;;
*) processes="StartServers 1
ServerLimit 2
ThreadsPerChild 64" ;;
esac
cat >conf <<END
ServerRoot $PWD
DefaultRuntimeDir $PWD
PidFile $PWD/pid
ErrorLog $PWD/errors
LogLevel emerg
ServerName truth
User www-data
Group www-data
LoadModule mpm_$1_module /usr/lib/apache2/modules/mod_mpm_$1.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
LoadModule proxy_connect_module /usr/lib/apache2/modules/mod_proxy_connect.so
LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so
LoadModule http2_module /usr/lib/apache2/modules/mod_http2.so
$processes
MaxRequestWorkers 128
KeepAliveTimeout 300
Listen 8080
Protocols h2 h2c http/1.1
ProxyRequests On
AllowCONNECT 9000
ProxyPass / http://$UPSTREAM/ flushpackets=on
END
if [ "$2" = tls ]; then
	printf 'SSLEngine on\nSSLCertificateFile %s\n' "$PWD/cert.pem" >>conf
fi
exec apache2 -D FOREGROUND -f "$PWD/conf"
