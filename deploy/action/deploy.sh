#!/usr/bin/env bash
# The second step of the action: uploads the folder and writes what came of it to the outputs of the workflow. The key is in WALLET_KEY,
# which the command reads itself: it is on no command line and in no file. SLUICE_CLIENT: the program that the first step has checked.
set -euo pipefail
words=(deploy "$DEPLOY_FOLDER" --json --network "${DEPLOY_NETWORK:-mainnet}")
add() { # add OPTION VALUE: only where there is a value
  if [ -n "$2" ]; then words+=("$1" "$2"); fi
}
add --upload "${DEPLOY_UPLOAD_URL:-}"
add --payment "${DEPLOY_PAYMENT_URL:-}"
add --gateway "${DEPLOY_GATEWAY_URL:-}"
add --index "${DEPLOY_INDEX:-}"
add --fallback "${DEPLOY_FALLBACK:-}"
add --name "${DEPLOY_NAME:-}"
if [ "${DEPLOY_BUNDLE:-false}" = true ]; then words+=(--bundle); fi
status=0
result=$(node "$SLUICE_CLIENT" "${words[@]}") || status=$?
# 6: all of it was uploaded, but the name could not be set. That is paid for, so the link is told all the same.
if [ "$status" != 0 ] && [ "$status" != 6 ]; then exit "$status"; fi
printf '%s' "$result" | node -e '
  const { id, link, uploadedFiles, totalFiles } = JSON.parse(require("node:fs").readFileSync(0, "utf8"))
  const lines = [`id=${id}`, `link=${link}`, `uploaded=${uploadedFiles}`]
  require("node:fs").appendFileSync(process.env.GITHUB_OUTPUT, `${lines.join("\n")}\n`)
  const text = `${uploadedFiles} of ${totalFiles} files uploaded: ${link}`
  console.log(text)
  if (process.env.GITHUB_STEP_SUMMARY) require("node:fs").appendFileSync(process.env.GITHUB_STEP_SUMMARY, `${text}\n`)
'
exit "$status"
