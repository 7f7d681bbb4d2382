// Prints docs/http-api.md: every path of a running program, from the descriptions that its routers are built of.
//
// node bin/http-api.mjs GATEWAY UPLOAD PAYMENT > docs/http-api.md     with the addresses that `npm start` prints
import { fileURLToPath } from 'node:url'

const head = `# HTTP interface

Every path that the three services answer. \`node bin/http-api.mjs GATEWAY UPLOAD PAYMENT\` makes this page from the descriptions
of a running program; a test compares it. Parameters, bodies and statuses stand at \`/openapi.json\` and \`/api-docs\` of each service.

HEAD is answered wherever GET is. Paths below \`/gateway/\` lie below \`/ar-io/\` with \`INTERFACE_VOCABULARY=ar-io\`. Names have hosts
instead of paths: \`{name}.{root host}/{path}\` and \`{undername}_{name}.{root host}/{path}\`.
`

const services = [
  [
    'Gateway',
    'Listens on `PORT` (3000). Rate limit paths exist while limits are on, x402 paths while payments are on.',
  ],
  ['Upload service', 'Listens on `UPLOAD_PORT` (3001). Every path exists at the root and below `/v1`.'],
  ['Payment service', 'Listens on `PAYMENT_PORT` (3002).'],
]

/** Method, path and meaning: methods that mean the same stand together. */
function rowsOf({ paths }, isOfOperators) {
  const rows = []
  for (const [path, methods] of Object.entries(paths)) {
    if (path.startsWith('/v1/') && path.slice(3) in paths) continue
    const bySummary = new Map()
    for (const [method, { summary, security }] of Object.entries(methods)) {
      if (method === 'head' || (security !== undefined) !== isOfOperators) continue
      bySummary.set(summary, [...(bySummary.get(summary) ?? []), method.toUpperCase()])
    }
    for (const [summary, names] of bySummary) rows.push([names.join(', '), `\`${path}\``, summary])
  }
  return rows
}

/** As the formatter of the project writes a table: each column as wide as its widest cell. */
function table(rows) {
  const head = ['Method', 'Path', 'What it does']
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column].length)))
  const line = (cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}

/** `documents`: those of gateway, upload and payment service, as `/openapi.json` has them. */
export function httpApi(documents) {
  const sections = services.map(([title, about], index) => {
    const operators = rowsOf(documents[index], true)
    const guarded =
      operators.length === 0
        ? ''
        : `\n\nFor operators and other services, behind a key:\n\n${table(operators)}`
    return `## ${title}\n\n${about}\n\n${table(rowsOf(documents[index], false))}${guarded}\n`
  })
  return `${head}\n${sections.join('\n')}`
}

async function main(addresses) {
  if (addresses.length !== services.length) {
    process.stderr.write('Usage: node bin/http-api.mjs GATEWAY UPLOAD PAYMENT\n')
    process.exitCode = 2
    return
  }
  const documents = await Promise.all(
    addresses.map(async (address) => (await fetch(new URL('/openapi.json', address))).json()),
  )
  process.stdout.write(httpApi(documents))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2))
