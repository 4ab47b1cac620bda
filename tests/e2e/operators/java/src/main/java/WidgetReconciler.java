import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.EventBuilder;
import io.fabric8.kubernetes.api.model.HasMetadata;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import java.time.Instant;
import java.util.Map;

/** Brings the children and the status of a Widget to what its spec demands. */
final class WidgetReconciler {
  private static final String MANAGER = "operator";
  private static final String FINALIZER = "example.com/cleanup";

  private final KubernetesClient client;

  WidgetReconciler(KubernetesClient client) {
    this.client = client;
  }

  void reconcile(Widget widget) {
    if (!widget.hasFinalizer(FINALIZER)) {
      client.resource(widget).edit(current -> { // a JSON patch
        current.addFinalizer(FINALIZER);
        return current;
      });
    }
    int size = widget.getSpec().size;
    client.resource(configMap(widget)).fieldManager(MANAGER).forceConflicts().serverSideApply();
    client.resource(deployment(widget)).fieldManager(MANAGER).forceConflicts().serverSideApply();
    client.apps().deployments().inNamespace(widget.getMetadata().getNamespace())
        .withName(widget.getMetadata().getName())
        .patch(
            PatchContext.of(PatchType.STRATEGIC_MERGE),
            "{\"metadata\":{\"annotations\":{\"example.com/size\":\"%d\"}}}".formatted(size));
    long generation = widget.getMetadata().getGeneration();
    if (widget.getStatus() == null || widget.getStatus().observedGeneration != generation) {
      client.resource(widget).subresource("status").patch(
          PatchContext.of(PatchType.JSON_MERGE),
          "{\"status\":{\"size\":%d,\"observedGeneration\":%d}}".formatted(size, generation));
      record(widget, "size " + size);
    }
  }

  void cleanUp(Widget widget) {
    if (widget.hasFinalizer(FINALIZER)) {
      client.resource(configMap(widget)).delete();
      client.resource(deployment(widget)).delete();
      client.resource(widget).edit(current -> {
        current.removeFinalizer(FINALIZER);
        return current;
      });
    }
  }

  private static ConfigMap configMap(Widget widget) {
    Map<String, String> data = Map.of("size", String.valueOf(widget.getSpec().size));
    return owned(new ConfigMapBuilder().withData(data).build(), widget);
  }

  private static Deployment deployment(Widget widget) {
    Map<String, String> labels = Map.of("widget", widget.getMetadata().getName());
    return owned(new DeploymentBuilder()
        .withNewSpec()
        .withReplicas(widget.getSpec().size)
        .withNewSelector().withMatchLabels(labels).endSelector()
        .withNewTemplate()
        .withNewMetadata().withLabels(labels).endMetadata()
        .withNewSpec().addNewContainer().withName("widget").withImage("widget:1").endContainer().endSpec()
        .endTemplate()
        .endSpec()
        .build(), widget);
  }

  private static <T extends HasMetadata> T owned(T child, Widget widget) {
    child.setMetadata(new ObjectMetaBuilder()
        .withName(widget.getMetadata().getName())
        .withNamespace(widget.getMetadata().getNamespace())
        .addToLabels(MANAGER, "java")
        .build());
    child.addOwnerReference(widget, true, true);
    return child;
  }

  private void record(Widget widget, String message) {
    String now = Instant.now().toString();
    client.v1().events().resource(new EventBuilder()
        .withNewMetadata()
        .withGenerateName(widget.getMetadata().getName() + ".")
        .withNamespace(widget.getMetadata().getNamespace())
        .endMetadata()
        .withNewInvolvedObject()
        .withApiVersion(widget.getApiVersion())
        .withKind(widget.getKind())
        .withNamespace(widget.getMetadata().getNamespace())
        .withName(widget.getMetadata().getName())
        .withUid(widget.getMetadata().getUid())
        .endInvolvedObject()
        .withNewSource().withComponent(MANAGER).endSource()
        .withType("Normal")
        .withReason("Reconciled")
        .withMessage(message)
        .withFirstTimestamp(now)
        .withLastTimestamp(now)
        .withCount(1)
        .build())
        .create();
  }
}
