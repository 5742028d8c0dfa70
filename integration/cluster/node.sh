#!/bin/bash
# First process of a node: runs in mount, UTS, network and PID namespaces of its own, gives them a node's look and then
# only holds them. When it ends the kernel ends whatever runs there and drops every mount: nothing is left to clean up.
#
#   node.sh NAME FOLDER PAUSE        FOLDER/own/PATH is shown at PATH, file by file or folder by folder
set -euo pipefail
name=$1 folder=$2 pause=$3

hostname "$name"
ip link set lo up

# A new sysfs, since the old one shows the machine's network interfaces; it comes without the cgroups below.
mkdir -p "$folder/cgroup"
mount --rbind /sys/fs/cgroup "$folder/cgroup"
mount -t sysfs sysfs /sys
mount --rbind "$folder/cgroup" /sys/fs/cgroup
umount --recursive --lazy "$folder/cgroup"

# Fixed paths of kubelet, containerd and the network plugins. What a real machine forgets when it starts is in memory.
for path in /var/lib/kubelet /var/log/pods /var/log/containers /var/lib/cni; do
    mkdir -p "$folder/disk$path"
    mount --bind "$folder/disk$path" "$path"
done
mount -t tmpfs -o size=256m,mode=755 tmpfs /run/containerd
mount -t tmpfs -o size=1m,mode=755 tmpfs /run/netns

# Files that shall say something else here: who the machine is, what it has, and settings that kubelet writes.
while IFS= read -r path; do
    [[ -e $path ]] && mount --bind "$folder/own$path" "$path"
done <"$folder/own.list"

mount --make-rshared / # last, or the steps above would undo each other; kubelet wants its mounts shared with pods
echo 1 >/proc/sys/net/ipv4/ip_forward
touch "$folder/ready"
exec "$pause"
