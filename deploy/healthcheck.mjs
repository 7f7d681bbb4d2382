#!/usr/bin/env node
// Asks the gateway of this container whether it is well. Exit code 0: well; 1: not, or no answer within 4 seconds.
const { PORT = '3000', INTERFACE_VOCABULARY = 'neutral' } = process.env
const prefix = INTERFACE_VOCABULARY === 'ar-io' ? '/ar-io' : '/gateway'

try {
  const answer = await fetch(`http://127.0.0.1:${PORT}${prefix}/healthcheck`, {
    signal: AbortSignal.timeout(4000),
  })
  process.stdout.write(await answer.text())
  process.exitCode = answer.ok ? 0 : 1
} catch (error) {
  process.stdout.write(`no answer: ${error.cause?.message ?? error.message}\n`)
  process.exitCode = 1
}
