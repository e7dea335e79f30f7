//go:build !race

package changes_test

import (
	"fmt"
	"math"
	"testing"
)

// again are incidents that have happened before, that begin slowly, or that silence something. They were written before
// the ranking was changed for them.
var again = []struct {
	asked float64 // after it began
	twins []float64
	incident
}{
	{600, []float64{week + 5*hour}, incident{"a disk fills up again on another node, as a week ago", "default", "Node", "EvictionThresholdMet", "", func(s *scene) {
		node := s.node()
		for n := range 20 {
			s.warn(25*float64(n), "default", "Node", node, "EvictionThresholdMet", "kubelet", "Attempting to reclaim ephemeral-storage")
		}
		for i, pod := range s.somewhere(9) {
			ns, name := split(pod)
			s.warn(6+40*float64(i), ns, "Pod", name, "Evicted", "kubelet", "The node was low on resource: ephemeral-storage. Threshold quantity: 10%, available: 4%.")
		}
	}}},
	{600, []float64{week}, incident{"a backup of each week stops a database for the second time", "orders", "Pod", "Unhealthy", "ledger-db", func(s *scene) {
		s.note(0, "orders", "CronJob", "ledger-backup", "SuccessfulCreate", "cronjob-controller", "Created job ledger-backup-29640000")
		s.unhealthy(20, 900, "orders", "ledger-db-0", "Readiness probe failed: pg_isready: no response")
		for i := range 4 {
			s.unhealthy(70+6*float64(i), 900, "orders", s.pod(app{name: "api"}), "Readiness probe failed: HTTP probe failed with statuscode: 503")
		}
	}}},
	{600, []float64{13 * day}, incident{"a token that nobody renews expires again", "", "Application", "ComparisonError", "", func(s *scene) {
		for i := range 12 {
			for at := 2 * float64(i); at < 1200; at += 180 {
				s.warn(at, "argocd", "Application", fmt.Sprintf("%s-app", s.namespaces[3*i]), "ComparisonError", "argocd-application-controller", "Failed to load target state: authentication required: token has expired")
			}
		}
	}}},
	{2400, nil, incident{"a leak of memory that kills more and more often", "fraud", "Pod", "BackOff", "scorer", func(s *scene) {
		pod := s.pod(app{name: "scorer"})
		for n := range 24 {
			at := 2400 * math.Sqrt(float64(n)/24)
			s.note(at, "fraud", "Pod", pod, "Pulled", "kubelet", "Container image already present on machine")
			s.note(at+1, "fraud", "Pod", pod, "Started", "kubelet", "Started container scorer")
			s.warn(at+3, "fraud", "Pod", pod, "BackOff", "kubelet", "Back-off restarting failed container scorer in pod")
		}
	}}},
	{1800, []float64{31 * hour}, incident{"a registry slows down by and by", "", "Pod", "Failed", "", func(s *scene) {
		for i, pod := range s.somewhere(40) {
			ns, name := split(pod)
			s.pull(1800*math.Sqrt(float64(i)/40), ns, name, "context deadline exceeded while awaiting headers")
		}
	}}},
	{1500, []float64{week}, incident{"a volume fills up slowly, as a week ago", "mail", "Pod", "Unhealthy", "spool", func(s *scene) {
		for n := range 40 {
			s.warn(1500*math.Sqrt(float64(n)/40), "mail", "Pod", "spool-0", "Unhealthy", "kubelet", "Liveness probe failed: queue file write error: No space left on device")
		}
		s.warn(1100, "mail", "Pod", "spool-0", "BackOff", "kubelet", "Back-off restarting failed container spool in pod spool-0")
	}}},
	{900, []float64{31 * hour, 3 * day, week}, incident{"the same node is lost for the fourth time", "default", "Node", "NodeNotReady", "", func(s *scene) {
		s.note(0, "default", "Node", "node-41", "NodeNotReady", "node-controller", "Node node-41 status is now: NodeNotReady")
		pods := s.somewhere(18)
		for _, pod := range pods {
			ns, name := split(pod)
			s.warn(0, ns, "Pod", name, "NodeNotReady", "node-controller", "Node is not ready")
			s.note(300, ns, "Pod", name, "TaintManagerEviction", "taint-eviction-controller", "Marking for deletion Pod")
		}
		s.replaced(302, pods)
	}}},
	{600, nil, incident{"a new version of the network agent crashes node by node", "kube-system", "Pod", "BackOff", "cilium", func(s *scene) {
		for n := range 5 {
			s.note(90*float64(n), "kube-system", "DaemonSet", "cilium", "SuccessfulCreate", "daemonset-controller", "Created pod")
			s.crash(90*float64(n)+4, "kube-system", "cilium-"+s.suffix(5))
			for _, pod := range s.somewhere(4) {
				ns, name := split(pod)
				s.warn(90*float64(n)+9, ns, "Pod", name, "FailedCreatePodSandBox", "kubelet", "plugin type=\"cilium-cni\" failed (add): unable to connect to Cilium daemon")
			}
		}
	}}},
	{1500, nil, incident{"a mirror has ended", "", "", "", "cluster edge", func(*scene) {}}},
	{1500, []float64{2 * day}, incident{"a mirror has ended again", "", "", "", "cluster edge", func(*scene) {}}},
}

// TestAgain plays each of these incidents in a cluster beside another one, edge, of which a mirror tells. That is late
// by some minutes each day, and away in the two last incidents.
func TestAgain(t *testing.T) {
	t.Parallel()
	var found places
	for i := range again {
		in := &again[i]
		c := background(6, 0.4, 2*week).played(func(c *cluster) {
			edge(c, func(at float64) bool {
				for _, before := range append([]float64{0}, in.twins...) {
					if from := c.begins(i) - before; in.reason == "" && from <= at && at < from+1800 {
						return true
					}
				}
				return math.Mod(at, day) > 3*hour && math.Mod(at, day) < 3*hour+480
			})
			for _, before := range append([]float64{0}, in.twins...) {
				in.play(&scene{c, c.begins(i) - before})
			}
		})
		found.look(t, &in.incident, c.ask(t, at(c.begins(i)+in.asked)))
	}
	found.want(t, 14, 18)
}

// edge says what comes of another cluster: something each twenty seconds or so, but not while it is away.
func edge(c *cluster, away func(at float64) bool) {
	c.cluster = "edge"
	c.every(4320, nil, func(at float64) {
		if a := c.app(); !away(at) {
			c.say(at, a.namespace, "Pod", c.pod(a), normal, "Pulled", "kubelet", "Container image already present on machine")
		}
	})
	c.cluster = ""
}

// TestFormerIsOfAllNamespaces: the former outage of a row of several namespaces is counted over all of them, as the row
// itself is.
func TestFormerIsOfAllNamespaces(t *testing.T) {
	t.Parallel()
	c := background(6, 0.4, week).played(func(c *cluster) {
		for _, before := range []float64{0, 3 * day} {
			s := &scene{c, c.begins(0) - before}
			for n := range 12 {
				s.warn(12*float64(n), c.namespaces[n%4], "Pod", fmt.Sprintf("web-%d", n), "Evicted", "kubelet", "The node was low on resource: memory.")
			}
		}
	})
	a := c.ask(t, at(c.begins(0)+600))
	for _, r := range a.Rows {
		if r.By.Reason == "Evicted" && r.By.Namespace == "" {
			if r.Former == nil || r.Former.Count != 12 || r.Now != 12 {
				t.Errorf("%d now, before %+v", r.Now, r.Former)
			}
			return
		}
	}
	t.Errorf("no row of all namespaces: %v", a.Rows)
}
