import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { readConfig } from '../../config/read.js'
import { startThread } from '../actor/thread.js'
import { exitCode } from './exit-code.js'

const help = `sluice devnet: runs the embedded base-layer node alone

Usage: sluice devnet [--port N] [--block-ms N] [--data FOLDER] [--replay FOLDER]

  --port N         where to listen on 127.0.0.1 (default: DEVNET_PORT)
  --block-ms N     time between blocks; 0 mines on demand only: GET /mine (default: DEVNET_BLOCK_MS)
  --data FOLDER    where the chain lies (default: DATA_PATH/devnet)
  --replay FOLDER  serve recorded node JSON instead of a chain of its own

Examples:
  sluice devnet --block-ms 0
  curl http://127.0.0.1:1984/mint/<address>/1000000000000 && curl http://127.0.0.1:1984/mine
`

/** Runs the node until SIGINT or SIGTERM. */
export async function devnet(words: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...words],
    options: {
      help: { type: 'boolean' },
      port: { type: 'string' },
      'block-ms': { type: 'string' },
      data: { type: 'string' },
      replay: { type: 'string' },
    },
  })
  if (values.help === true) {
    process.stdout.write(help)
    return 0
  }
  const config = readConfig({
    ...(values.port === undefined ? {} : { DEVNET_PORT: values.port }),
    ...(values['block-ms'] === undefined ? {} : { DEVNET_BLOCK_MS: values['block-ms'] }),
    ...(values.replay === undefined ? {} : { DEVNET_REPLAY_PATH: values.replay }),
  })
  if (Array.isArray(config)) {
    process.stderr.write(`sluice devnet: ${config.join('\n  ')}\n`)
    return exitCode.usage
  }
  const { devnetPort, devnetBlockMs, devnetReplayPath, dataPath } = config.server
  const thread = await startThread('devnet', 'devnet', {
    options: {
      host: '127.0.0.1',
      port: devnetPort,
      dataPath: resolve(values.data ?? `${dataPath}/devnet`),
      blockMs: devnetBlockMs,
      ...(devnetReplayPath === undefined ? {} : { replayPath: resolve(devnetReplayPath) }),
    },
  })
  const { url } = thread.reported as { url: string }
  process.stdout.write(
    process.stdout.isTTY ? `Base-layer node: ${url}\n` : `${JSON.stringify({ msg: 'ready', url })}\n`,
  )
  await new Promise<void>((leave) => {
    process.once('SIGTERM', leave)
    process.once('SIGINT', leave)
    void thread.gone.then(() => leave())
  })
  await thread.stop(5000)
  return 0
}
