"""A Ray cluster of several simulated nodes on this machine, for as long as its input is open. argv: how many nodes, CPUs of each.

Prints the cluster's address. Then, for each line of its input: "add" adds a node, a number removes that one (they count from 1), and
"drain" and a number says that it is to go in half a minute.
The driver belongs to a node of its own without CPUs: one that takes no worker and stays.
"""

import subprocess
import sys

from ray.cluster_utils import Cluster

# In a mode for tests the head node finds the death of another in a second, not in fifteen.
QUICK = {
    "health_check_period_ms": 200,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 3,
    "health_check_initial_delay_ms": 0,
}
MEMORY = 80 << 20  # bytes: the least for its object store, which is not used

count, cpus = int(sys.argv[1]), int(sys.argv[2])
common = {"node_ip_address": "127.0.0.2", "object_store_memory": MEMORY, "include_log_monitor": False}
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, "_system_config": QUICK, **common})
nodes = [cluster.add_node(wait=False, num_cpus=cpus, **common) for _ in range(count)]
cluster.wait_for_nodes(60)
print(cluster.address, flush=True)
for line in sys.stdin:
    if line.strip() == "add":
        nodes.append(cluster.add_node(num_cpus=cpus, **common))
    elif line.startswith("drain"):
        node = ("--address", cluster.address, "--node-id", nodes[int(line.split()[1]) - 1].node_id)
        why = ("--reason", "DRAIN_NODE_REASON_PREEMPTION", "--reason-message", "a test", "--deadline-remaining-seconds", "30")
        subprocess.run([sys.executable, "-m", "ray.scripts.scripts", "drain-node", *node, *why], check=True, capture_output=True)
    else:
        cluster.remove_node(nodes[int(line) - 1], allow_graceful=False)
    print("done", flush=True)
cluster.shutdown()
