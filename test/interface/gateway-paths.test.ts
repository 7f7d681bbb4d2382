/** The gateway's own description, held against what it answers. */
import t, { type Test } from 'tap'
import { run } from '../flow/running.js'

const json = { accept: 'application/json', 'content-type': 'application/json' }
const adminKey = 'a-key-for-this-test-only'

interface Operation {
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly example: string }[]
  readonly responses: Readonly<Record<string, object>>
  readonly security?: readonly object[]
}
interface OpenApi {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

/** The address that a description gives as an example. */
function exampleOf(path: string, { parameters }: Operation): string {
  const filled = parameters
    .filter((one) => one.in === 'path')
    .reduce((text, { name, example }) => text.replace(`{${name}}`, example), path)
  const query = parameters
    .filter((one) => one.in === 'query')
    .map(({ name, example }) => `${name}=${name === 'info_hash' ? example : encodeURIComponent(example)}`)
  return query.length === 0 ? filled : `${filled}?${query.join('&')}`
}

async function everyPath(t: Test, gateway: string, document: OpenApi): Promise<void> {
  for (const [path, methods] of Object.entries(document.paths)) {
    const [first] = Object.values(methods)
    if (first === undefined) throw new Error(`${path} has no method`)
    const authorization = `Bearer ${adminKey}`
    const headers = { ...(first.security === undefined ? {} : { authorization }), ...json }
    const url = gateway + exampleOf(path, first)
    const wrong = await fetch(url, { method: 'PATCH', headers, redirect: 'manual' })
    t.equal(wrong.status, 405, `${path} is there, and not for PATCH`)
    const allowed = (wrong.headers.get('allow') ?? '').split(', ').filter((one) => !/HEAD|OPTIONS/.test(one))
    const documented = Object.keys(methods).map((one) => one.toUpperCase())
    t.same(allowed.sort(), documented.filter((one) => one !== 'HEAD').sort(), `methods of ${path}`)
    for (const [method, operation] of Object.entries(methods)) {
      const body = method === 'get' || method === 'head' ? {} : { body: '{}' }
      const options = { method: method.toUpperCase(), headers, redirect: 'manual', ...body } as const
      const answer = await fetch(gateway + exampleOf(path, operation), options)
      await answer.arrayBuffer()
      t.ok(String(answer.status) in operation.responses, `${method} ${path}: ${answer.status}`)
    }
  }
}

for (const [vocabulary, prefix] of [
  ['neutral', '/gateway'],
  ['ar-io', '/ar-io'],
] as const) {
  t.test(`every path that the ${vocabulary} gateway describes answers as described`, async (t) => {
    const { urls } = await run(t, t.testdir(), {
      SERVICES: 'gateway',
      DEVNET_BLOCK_MS: '0',
      INTERFACE_VOCABULARY: vocabulary,
      ADMIN_API_KEY: adminKey,
      ENABLE_RATE_LIMITER: 'true',
    })
    const { gateway = '' } = urls
    const answer = await fetch(`${gateway}/openapi.json`)
    t.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
    const document = (await answer.json()) as OpenApi
    t.match(document.openapi, /^3\.1\./)
    const paths = Object.keys(document.paths)
    for (const path of [
      'info',
      'peers',
      'offsets/{id}',
      'digest/{digest}',
      'rate-limit/ip/{ip}',
      'admin/debug',
    ]) {
      t.ok(paths.includes(`${prefix}/${path}`), path)
    }
    for (const path of ['/', '/{id}', '/raw/{id}', '/chunk/{offset}/data', '/graphql', '/tx/{id}/offset']) {
      t.ok(paths.includes(path), path)
    }
    t.ok(paths.length > 60)
    const page = await fetch(`${gateway}/api-docs`)
    t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
    const html = await page.text()
    t.same(
      paths.filter((path) => !html.includes(`<code>${path}`)),
      [],
      'all of them are on the page',
    )
    t.notMatch(html, /<link (?!rel="icon" href="data:)|src=/)
    await everyPath(t, gateway, document)
  })
}
