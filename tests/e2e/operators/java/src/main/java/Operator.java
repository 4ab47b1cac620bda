import io.fabric8.kubernetes.api.model.HasMetadata;
import io.fabric8.kubernetes.api.model.apiextensions.v1.CustomResourceDefinition;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import io.fabric8.kubernetes.client.informers.cache.Cache;
import java.net.HttpURLConnection;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An operator written with fabric8: it keeps a ConfigMap and a Deployment for each Widget, of the same name.
 *
 * <p>It reads KUBECONFIG and POD_NAME, prints "running" once it leads and its informers have synced, and logs to
 * stderr.
 */
public final class Operator implements ResourceEventHandler<HasMetadata> {
  private static final Logger LOG = LoggerFactory.getLogger(Operator.class);
  private static final String NAME = "operator";
  private static final long PAGE = 2;

  private final ScheduledExecutorService worker = Executors.newSingleThreadScheduledExecutor();
  private final Set<String> queue = ConcurrentHashMap.newKeySet();
  private final KubernetesClient client;
  private final WidgetReconciler reconciler;
  private SharedIndexInformer<Widget> widgets;

  private Operator(KubernetesClient client) {
    this.client = client;
    this.reconciler = new WidgetReconciler(client);
  }

  public static void main(String[] arguments) {
    KubernetesClient client = new KubernetesClientBuilder().build();
    client.apiextensions().v1().customResourceDefinitions().withName("widgets.example.com")
        .waitUntilCondition(Operator::isEstablished, 60, TimeUnit.SECONDS);
    Operator operator = new Operator(client);
    CompletableFuture<?> election = client.leaderElector()
        .withConfig(new LeaderElectionConfigBuilder()
            .withName(NAME)
            .withLock(new LeaseLock("default", NAME, System.getenv("POD_NAME")))
            .withLeaseDuration(Duration.ofSeconds(15))
            .withRenewDeadline(Duration.ofSeconds(10))
            .withRetryPeriod(Duration.ofSeconds(2))
            .withReleaseOnCancel(true)
            .withLeaderCallbacks(new LeaderCallbacks(
                () -> operator.worker.execute(operator::start),
                () -> LOG.info("no longer leads"),
                holder -> LOG.info("{} leads", holder)))
            .build())
        .build()
        .start();
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      operator.worker.shutdownNow();
      election.cancel(true);
    }));
    try {
      election.join(); // until the lease is lost
      System.exit(1);
    } catch (CancellationException terminated) {
      LOG.info("terminated");
    }
  }

  private static boolean isEstablished(CustomResourceDefinition definition) {
    return definition != null && definition.getStatus() != null
        && definition.getStatus().getConditions().stream()
            .anyMatch(one -> one.getType().equals("Established") && one.getStatus().equals("True"));
  }

  private void start() {
    widgets = client.resources(Widget.class).inAnyNamespace().withLimit(PAGE).inform(this);
    client.configMaps().inAnyNamespace().withLabel(NAME).withLimit(PAGE).inform(this);
    client.apps().deployments().inAnyNamespace().withLabel(NAME).inform(this);
    System.out.println("running");
  }

  @Override
  public void onAdd(HasMetadata added) {
    enqueue(Cache.metaNamespaceKeyFunc(added), 0);
  }

  @Override
  public void onUpdate(HasMetadata old, HasMetadata updated) {
    enqueue(Cache.metaNamespaceKeyFunc(updated), 0);
  }

  @Override
  public void onDelete(HasMetadata deleted, boolean stateIsUnknown) {
    enqueue(Cache.metaNamespaceKeyFunc(deleted), 0);
  }

  private void enqueue(String key, long seconds) {
    if (queue.add(key)) {
      worker.schedule(() -> sync(key), seconds, TimeUnit.SECONDS);
    }
  }

  private void sync(String key) {
    queue.remove(key);
    Widget widget = widgets.getStore().getByKey(key);
    try {
      if (widget != null && widget.isMarkedForDeletion()) {
        reconciler.cleanUp(widget);
      } else if (widget != null) {
        reconciler.reconcile(widget);
      }
    } catch (KubernetesClientException error) {
      if (error.getCode() == HttpURLConnection.HTTP_NOT_FOUND) {
        return; // the informer will know soon that the Widget is deleted
      }
      if (worker.isShutdown()) {
        return; // terminating interrupts calls
      }
      LOG.error("{}: {} {}", key, error.getMessage(), String.valueOf(error.getCause()));
      enqueue(key, 1);
    }
  }
}
