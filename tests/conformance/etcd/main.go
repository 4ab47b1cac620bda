// Command etcd is etcd, with its own flags, of the version that kube-apiserver's client has.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
