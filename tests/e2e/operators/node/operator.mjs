// An operator written with client-node: it keeps a ConfigMap and a Deployment for each Widget, of the same name.
//
// It reads KUBECONFIG and POD_NAME, prints "running" once it leads and its informers have synced, and logs to stderr.

import process from "node:process";
import { setTimeout } from "node:timers/promises";
import * as k8s from "@kubernetes/client-node";

const NAME = "operator";
const FINALIZER = "example.com/cleanup";
const LEASE = { name: NAME, namespace: "default" };
const RETRY_PERIOD_MS = 2_000;
const RENEW_DEADLINE_MS = 10_000;
const WIDGETS = { group: "example.com", version: "v1", plural: "widgets" };
const MERGE = k8s.setHeaderOptions("Content-Type", k8s.PatchStrategy.MergePatch);

const config = new k8s.KubeConfig();
config.loadFromDefault();
const objects = k8s.KubernetesObjectApi.makeApiClient(config);
const customObjects = config.makeApiClient(k8s.CustomObjectsApi);
const leases = config.makeApiClient(k8s.CoordinationV1Api);

const log = (level, message) => process.stderr.write(`${level} ${message}\n`);
const isMissing = (error) => error.code === 404;

/** Acquire or renew the lease. */
async function hold() {
  const renewTime = new k8s.V1MicroTime();
  const held = { holderIdentity: process.env.POD_NAME, leaseDurationSeconds: 15, renewTime };
  try {
    const lease = await leases.readNamespacedLease(LEASE);
    await leases.replaceNamespacedLease({ ...LEASE, body: { ...lease, spec: { ...lease.spec, ...held } } });
  } catch (error) {
    if (!isMissing(error)) {
      throw error;
    }
    await leases.createNamespacedLease({ ...LEASE, body: { metadata: LEASE, spec: held } });
  }
}

const tryHold = () =>
  hold().then(
    () => true,
    (error) => log("WARN", `the lease was not renewed: ${error.message}`),
  );

async function renew() {
  let renewed = Date.now();
  while (Date.now() - renewed < RENEW_DEADLINE_MS) {
    await setTimeout(RETRY_PERIOD_MS);
    renewed = (await tryHold()) ? Date.now() : renewed;
  }
  log("ERROR", "the lease is lost");
  process.exit(1);
}

async function release() {
  const lease = await leases.readNamespacedLease(LEASE);
  lease.spec = { ...lease.spec, holderIdentity: undefined, leaseDurationSeconds: 1 };
  await leases.replaceNamespacedLease({ ...LEASE, body: lease });
  process.exit(0);
}

const merge = (widget, patch) => customObjects.patchNamespacedCustomObject({ ...path(widget), body: patch }, MERGE);

const path = ({ metadata: { name, namespace } }) => ({ ...WIDGETS, name, namespace });

function children(widget) {
  const { name, namespace, uid } = widget.metadata;
  const ownerReferences = [{ apiVersion: "example.com/v1", kind: "Widget", name, uid, controller: true }];
  const metadata = { name, namespace, labels: { [NAME]: "node" }, ownerReferences };
  const labels = { widget: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: "widget", image: "widget:1" }] } };
  const { size } = widget.spec;
  return [
    { apiVersion: "v1", kind: "ConfigMap", metadata, data: { size: `${size}` } },
    { apiVersion: "apps/v1", kind: "Deployment", metadata, spec: { replicas: size, selector: { matchLabels: labels }, template } },
  ];
}

async function reconcile(widget) {
  if (!widget.metadata.finalizers?.includes(FINALIZER)) {
    await merge(widget, { metadata: { finalizers: [...(widget.metadata.finalizers ?? []), FINALIZER] } });
  }
  for (const child of children(widget)) {
    await objects.patch(child, undefined, undefined, NAME, true, k8s.PatchStrategy.ServerSideApply);
  }
  const { name, namespace, generation } = widget.metadata;
  const { size } = widget.spec;
  const annotated = { metadata: { name, namespace, annotations: { "example.com/size": `${size}` } } };
  await objects.patch({ apiVersion: "apps/v1", kind: "Deployment", ...annotated }); // a strategic merge patch
  if (widget.status?.observedGeneration !== generation) {
    const status = { size, observedGeneration: generation };
    await customObjects.patchNamespacedCustomObjectStatus({ ...path(widget), body: { status } }, MERGE);
    await record(widget, `size ${size}`);
  }
}

async function record(widget, message) {
  const { apiVersion, kind } = widget;
  const { name, namespace, uid } = widget.metadata;
  const event = { apiVersion: "v1", kind: "Event", metadata: { generateName: `${name}.`, namespace } };
  const involvedObject = { apiVersion, kind, name, namespace, uid };
  const source = { component: NAME };
  const lastTimestamp = new Date().toISOString();
  await objects.create({ ...event, involvedObject, source, type: "Normal", reason: "Reconciled", message, lastTimestamp });
}

async function cleanUp(widget) {
  const others = widget.metadata.finalizers?.filter((one) => one !== FINALIZER) ?? [];
  if (others.length === widget.metadata.finalizers?.length) {
    return;
  }
  for (const child of children(widget)) {
    await objects.delete(child).catch((error) => (isMissing(error) ? undefined : Promise.reject(error)));
  }
  await merge(widget, { metadata: { finalizers: others } });
}

const queue = new Set();
let widgets;

function enqueue({ metadata: { namespace, name } }) {
  queue.add(`${namespace}/${name}`);
}

/** Handle the keys in the queue one after the other, for ever. */
async function work() {
  for (;;) {
    for (const key of queue) {
      queue.delete(key);
      const [namespace, name] = key.split("/");
      const widget = widgets.get(name, namespace);
      try {
        await (widget?.metadata.deletionTimestamp ? cleanUp(widget) : widget && reconcile(widget));
      } catch (error) {
        if (!isMissing(error)) {
          log("ERROR", `${key}: ${error.message}`);
          setTimeout(1_000).then(() => queue.add(key));
        }
      }
    }
    await setTimeout(50);
  }
}

/** Start an informer; as its documentation advises, start it again after an error. */
async function inform(url, list, labelSelector) {
  const informer = k8s.makeInformer(config, url, list, labelSelector);
  ["add", "update", "delete"].forEach((verb) => informer.on(verb, enqueue));
  informer.on("error", (error) => {
    log("WARN", `${url}: ${error.message}`);
    setTimeout(1_000).then(() => informer.start());
  });
  await informer.start();
  return informer;
}

while (!(await tryHold())) {
  await setTimeout(RETRY_PERIOD_MS);
}
renew();
process.on("SIGTERM", release);
widgets = await inform("/apis/example.com/v1/widgets", () => customObjects.listClusterCustomObject(WIDGETS));
await inform("/api/v1/configmaps", () => objects.list("v1", "ConfigMap", undefined, undefined, undefined, undefined, undefined, NAME), NAME);
await inform("/apis/apps/v1/deployments", () => objects.list("apps/v1", "Deployment", undefined, undefined, undefined, undefined, undefined, NAME), NAME);
process.stdout.write("running\n");
await work();
