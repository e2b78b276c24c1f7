// A receiver in another language. It verifies by the words of Standard Webhooks 1.0: HMAC-SHA256 of
// "id.timestamp.body" with the bytes behind "whsec_", one of the signatures of version 1 must fit,
// and the timestamp must be of the last five minutes. With STANDARD_WEBHOOKS, the path of the package
// of that name, it verifies by that. It prints a line for each request.
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const key = Buffer.from(process.env.WEBHOOK_SECRET.slice("whsec_".length), "base64");

const library = process.env.STANDARD_WEBHOOKS
  ? new (await import(process.env.STANDARD_WEBHOOKS)).default.Webhook(process.env.WEBHOOK_SECRET)
  : null;

function verify(headers, body) {
  if (library) return library.verify(body.toString(), headers);
  const id = headers["webhook-id"];
  const timestamp = headers["webhook-timestamp"];
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > 300) throw new Error("timestamp");
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  for (const each of headers["webhook-signature"].split(" ")) {
    const [version, signature] = each.split(",");
    const given = Buffer.from(signature, "base64");
    if (version === "v1" && given.length === expected.length && timingSafeEqual(given, expected)) {
      return JSON.parse(body);
    }
  }
  throw new Error("signature");
}

const server = createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const told = { id: request.headers["webhook-id"] };
    try {
      told.message = verify(request.headers, Buffer.concat(parts));
      response.writeHead(204).end();
    } catch (error) {
      told.error = error.message;
      response.writeHead(401).end();
    }
    console.log(JSON.stringify(told));
  });
});
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ port: server.address().port })));
