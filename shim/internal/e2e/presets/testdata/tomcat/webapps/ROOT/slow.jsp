<%= new String(new java.net.URL("http://127.0.0.1:BACKEND/").openStream().readAllBytes()) %>
