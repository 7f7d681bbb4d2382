#!/usr/bin/env node
import { clientCommands } from './client-commands.js'
import { dispatch } from './dispatch.js'

const help = `sluice-client: upload to permanent storage, and fetch with proof

Usage: sluice-client COMMAND [--help]

  put        uploads a file, or what comes by a pipe
  deploy     uploads a folder, only what is new of it, and gives it a manifest
  sync       the same whenever the folder changes (--watch)
  get        fetches content and proves it before it is written
  drive      drives with folders and files: create, ls, put, get, mkdir, mv, rename, hide, snapshot
  key        makes a key, shows its address, or takes one over
  price      what uploads cost; balance, top-up, share, history: credits

  -h, --help     this text; sluice-client COMMAND --help: what the command takes
  -v, --version  the version

Exit codes: 0 done, 1 failed, 2 wrong arguments, 3 not found, 4 a proof is wrong, 5 a server did not answer.

Examples:
  sluice-client put notes.txt --network mainnet --key wallet.json
  sluice-client deploy site/ --network mainnet --key wallet.json
  sluice-client get ID --network mainnet > copy.txt
`

process.exitCode = await dispatch(
  { name: 'sluice-client', commands: clientCommands, help },
  process.argv.slice(2),
)
