"""A real kube-apiserver with the HPA controller, on loopback, without a kubelet."""
