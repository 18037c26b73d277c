# Usage: start.sh SCRIPT ARGUMENT... Starts a script of this folder in an environment that is the same on Loam and on Linux.
# On both systems, capabilities that could change the host's clock or hardware are removed.
mkdir -p /tmp/work
cd /tmp/work
ulimit -c 0
ulimit -n 1024
exec setpriv --bounding-set -sys_time,-sys_boot,-sys_module,-sys_rawio,-mac_admin,-mac_override \
	env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LANG=C.UTF-8 \
	PYTHONPATH=/scripts PYTHONDONTWRITEBYTECODE=1 GOROOT=/suites/go /usr/bin/python3 "/scripts/$@" < /dev/null
