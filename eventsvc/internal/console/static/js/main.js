document.body.textContent = "Tidings";
