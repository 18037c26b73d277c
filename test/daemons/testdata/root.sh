# Usage: root.sh ROOT IMAGE PACKAGES. Makes an ext4 image with a root file system of Debian 12.
set -eu
root=$1 image=$2
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
debootstrap --variant=minbase bookworm "$root"
printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mount -t proc proc "$root/proc"
chroot "$root" apt-get install -q -y --no-install-recommends $3
umount "$root/proc"
rm -rf "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
rm -rf "$root"/usr/share/doc/* "$root"/usr/share/man/* "$root"/usr/share/locale/*
mke2fs -q -t ext4 -d "$root" "$image" 1200M
chmod 644 "$image"
