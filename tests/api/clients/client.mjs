// What a service that is not written in Python does: enqueue, wait, read logs, stop, retry.
// Needs nothing but Node: node client.mjs ROOT USER PASSWORD. Prints what it saw as JSON.

const [root, user, password] = process.argv.slice(2);
const authorization = "Basic " + Buffer.from(`${user}:${password}`).toString("base64");

async function ask(method, path, body, headers = {}) {
  const answer = await fetch(root + path, {
    method,
    headers: { authorization, "content-type": "application/json", ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: text ? JSON.parse(text) : null };
}

async function enqueue(name, kwargs, headers) {
  return ask("POST", "tasks/", { name, kwargs }, headers);
}

/** The task once it has ended, or has come to that status. */
async function waited(id, status) {
  for (;;) {
    const { body } = await ask("GET", `tasks/${id}/?wait=${status ? 0 : 10}`);
    if (status ? body.status === status : body.is_finished) return body;
    if (status) await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const seen = {};

const first = await enqueue("client.greet", { name: "Node" }, { "idempotency-key": "greet-1" });
const again = await enqueue("client.greet", { name: "Node" }, { "idempotency-key": "greet-1" });
seen.created = [first.status, again.status, first.body.id === again.body.id];
const greeted = await waited(first.body.id);
seen.greeted = [greeted.status, greeted.return_value];

const { body: logs } = await ask("GET", `tasks/${first.body.id}/logs/`);
seen.logs = logs.results.map((line) => line.message);

const { body: endless } = await enqueue("client.work_until_stopped", {});
await waited(endless.id, "running");
const stop = await ask("POST", `tasks/${endless.id}/stop/`, { reason: "enough" });
const stopped = await waited(endless.id);
seen.stopped = [stop.status, stopped.status];

const { body: flaky } = await enqueue("client.fail_once", {});
const failed = await waited(flaky.id);
const retry = await ask("POST", `tasks/${flaky.id}/retry/`, {});
const retried = await waited(flaky.id);
seen.retried = [failed.status, failed.errors[0].message, retry.status, retried.status];

const { status, body: problem } = await enqueue("client.gret", {});
seen.problem = [status, problem.code, problem.detail];

console.log(JSON.stringify(seen));
